"""`python -m raybo` is the command `raybo`."""

from raybo.cli import main

if __name__ == "__main__":
    main()
