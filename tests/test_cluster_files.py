"""The files of cluster/, checked as far as one machine allows; the local cluster for real."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[1]
CLUSTER = ROOT / "cluster"
BIN = Path(sys.executable).parent


def load(name: str) -> Any:
    return yaml.safe_load((CLUSTER / name).read_text())


def ray_version() -> str:
    match = re.search(r"^ray==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert match
    return match[1]


def kubernetes() -> tuple[Any, Any]:
    claim, job = yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text())
    return claim, job


def test_every_file_has_the_same_version_of_ray() -> None:
    for path in CLUSTER.iterdir():
        if path.is_file():
            named = re.findall(r"(?i)\bray\S{0,12}?[:= \"]{0,3}(\d+\.\d+\.\d+)", path.read_text())
            assert set(named) <= {ray_version()}, path.name
    assert kubernetes()[1]["spec"]["rayClusterSpec"]["rayVersion"] == ray_version()
    assert load("ray_cluster.yaml")["docker"]["image"].startswith(
        f"rayproject/ray:{ray_version()}-"
    )
    assert any(
        f"ray[default]=={ray_version()}" in line for line in load("onprem.yaml")["setup_commands"]
    )
    assert f"Ray {ray_version()} and Python 3.11" in (CLUSTER / "README.md").read_text()


# ray up ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ray_cluster.yaml", "onprem.yaml"])
def test_ray_accepts_the_cluster_file(name: str) -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = prepare_config(load(name))
    validate_config(config)
    broken = {**load(name), "max_wrokers": 3}
    with pytest.raises(jsonschema.ValidationError, match="max_wrokers"):
        validate_config(prepare_config(broken))


@pytest.mark.parametrize("name", ["ray_cluster.yaml", "onprem.yaml"])
def test_the_head_runs_no_evaluations_and_asks_for_a_token(name: str) -> None:
    config = load(name)
    (start,) = [line for line in config["head_start_ray_commands"] if "ray start" in line]
    assert "--num-cpus=0" in start
    assert "--dashboard-host=127.0.0.1" in start
    assert any(path.endswith(".ray/auth_token") for path in config["file_mounts"])
    assert "RAY_AUTH_MODE=token" in (CLUSTER / name).read_text().split("cluster_name:")[1]


@pytest.mark.parametrize("name", ["ray_cluster.yaml", "onprem.yaml"])
def test_ray_start_knows_every_option_in_the_cluster_file(name: str) -> None:
    from ray.scripts.scripts import start

    known = {option for parameter in start.params for option in parameter.opts}
    config = load(name)
    for line in config["head_start_ray_commands"] + config["worker_start_ray_commands"]:
        given = [word.partition("=")[0] for word in shlex.split(line) if word.startswith("--")]
        assert set(given) <= known


def test_onprem_starts_as_many_workers_as_it_names() -> None:
    config = load("onprem.yaml")
    n_workers = len(config["provider"]["worker_ips"])
    assert config["min_workers"] == config["max_workers"] == n_workers


# Kubernetes ------------------------------------------------------------------------------------


def closed(required: str, **properties: Any) -> dict[str, Any]:
    """Schema of an object that has these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


TEXT, WHOLE = {"type": "string"}, {"type": "integer", "minimum": 0}
AMOUNTS = closed("cpu memory", cpu=TEXT, memory=TEXT)
CONTAINER = closed(
    "name image resources",
    name=TEXT,
    image=TEXT,
    env={"type": "array", "items": closed("name value", name=TEXT, value=TEXT)},
    ports={"type": "array", "items": closed("containerPort name", containerPort=WHOLE, name=TEXT)},
    resources=closed("requests limits", requests=AMOUNTS, limits=AMOUNTS),
    volumeMounts={"type": "array", "items": closed("name mountPath", name=TEXT, mountPath=TEXT)},
)
VOLUME = closed(
    "name persistentVolumeClaim",
    name=TEXT,
    persistentVolumeClaim=closed("claimName", claimName=TEXT),
)
TEMPLATE = closed(
    "spec",
    spec=closed(
        "containers",
        containers={"type": "array", "items": CONTAINER},
        volumes={"type": "array", "items": VOLUME},
    ),
)
START_PARAMS = {"type": "object", "additionalProperties": TEXT}
RAYJOB = closed(
    "apiVersion kind metadata spec",
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayJob"},
    metadata=closed("name", name={"type": "string", "pattern": "^[a-z0-9-]{1,47}$"}),
    spec=closed(
        "entrypoint rayClusterSpec",
        entrypoint=TEXT,
        submissionMode={"enum": ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"]},
        shutdownAfterJobFinishes={"type": "boolean"},
        ttlSecondsAfterFinished=WHOLE,
        activeDeadlineSeconds=WHOLE,
        backoffLimit=WHOLE,
        rayClusterSpec=closed(
            "rayVersion headGroupSpec workerGroupSpecs authOptions",
            rayVersion=TEXT,
            authOptions=closed("mode", mode={"enum": ["token", "disabled"]}),
            enableInTreeAutoscaling={"type": "boolean"},
            autoscalerOptions=closed("", idleTimeoutSeconds=WHOLE),
            headGroupSpec=closed(
                "rayStartParams template", rayStartParams=START_PARAMS, template=TEMPLATE
            ),
            workerGroupSpecs={
                "type": "array",
                "items": closed(
                    "groupName rayStartParams template",
                    groupName=TEXT,
                    replicas=WHOLE,
                    minReplicas=WHOLE,
                    maxReplicas=WHOLE,
                    rayStartParams=START_PARAMS,
                    template=TEMPLATE,
                ),
            },
        ),
    ),
)


def test_the_rayjob_fits_the_fields_of_kuberay() -> None:
    claim, job = kubernetes()
    jsonschema.validate(job, RAYJOB)
    spec = job["spec"]["rayClusterSpec"]
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert spec["authOptions"]["mode"] == "token"
    templates = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    for pod in (group["template"]["spec"] for group in templates):
        (container,) = pod["containers"]
        assert container["image"] == f"raybo:ray{ray_version()}"
        assert container["resources"]["requests"] == container["resources"]["limits"]
    head = spec["headGroupSpec"]["template"]["spec"]
    (volume,) = head["volumes"]
    (mount,) = head["containers"][0]["volumeMounts"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert mount["name"] == volume["name"]
    assert f"--storage {mount['mountPath']} " in job["spec"]["entrypoint"]
    for group in spec["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def test_the_rayjob_starts_a_file_that_the_image_has() -> None:
    entrypoint = shlex.split(kubernetes()[1]["spec"]["entrypoint"])
    assert entrypoint[:2] == ["python", "/home/ray/raybo/cluster/smoke.py"]
    docker = (CLUSTER / "Dockerfile").read_text()
    assert "WORKDIR /home/ray/raybo" in docker
    assert "cluster/smoke.py cluster/smoke.py" in docker


# Dockerfile ------------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    text = (CLUSTER / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_dockerfile_builds_on_the_same_ray_and_copies_what_exists() -> None:
    words = [word for word, _ in instructions()]
    assert set(words) <= {"FROM", "ARG", "WORKDIR", "COPY", "RUN", "USER"}
    assert instructions()[0] == ("FROM", f"rayproject/ray:{ray_version()}-py311-cpu")
    assert instructions()[-1] == ("USER", "ray")
    for word, rest in instructions():
        if word == "COPY":
            sources = [part for part in rest.split()[:-1] if not part.startswith("--")]
            assert all((ROOT / source).exists() for source in sources), rest


# Slurm -----------------------------------------------------------------------------------------

SRUN = """#!/usr/bin/env bash
# Runs the task of each of the three nodes in turn, the head last, as srun would together.
while [[ $1 == --* ]]; do echo "srun $1" >>"$CALLS"; shift; done
for node in 2 1 0; do
    SLURM_NODEID=$node "$@" || exit
done
"""
SCONTROL = """#!/usr/bin/env bash
[ "$*" = "show hostnames node[4-6]" ] && printf 'node4\\nnode5\\nnode6\\n'
"""
RAY = """#!/usr/bin/env bash
# Notes how it was called; on the head it runs the command, unless Ray is said to be broken.
echo "ray $SLURM_NODEID $RAY_AUTH_MODE $(stat -c %a "$RAY_AUTH_TOKEN_PATH") $*" >>"$CALLS"
[ "$SLURM_NODEID" = 0 ] && [ -z "${BROKEN:-}" ] || exit 0
while [ "$1" != -- ]; do shift; done
shift
"$@"
"""


def run_slurm(folder: Path, *command: str, **extra: str) -> tuple[int, list[str]]:
    """Exit code of slurm.sbatch under stub commands, and how these were called."""
    stubs = folder / "bin"
    stubs.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL), ("ray", RAY)):
        (stubs / name).write_text(text)
        (stubs / name).chmod(0o755)
    environment = {
        "PATH": f"{stubs}:{BIN}:{os.environ['PATH']}",
        "CALLS": str(folder / "calls"),
        "SLURM_SUBMIT_DIR": str(folder),
        "SLURM_JOB_ID": "17",
        "SLURM_JOB_NUM_NODES": "3",
        "SLURM_JOB_NODELIST": "node[4-6]",
        "SLURM_CPUS_PER_TASK": "8",
        **extra,
    }
    script = ["bash", str(CLUSTER / "slurm.sbatch"), *command]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=60)
    assert (folder / "calls").exists(), done.stderr
    return done.returncode, (folder / "calls").read_text().splitlines()


def test_slurm_starts_ray_on_all_nodes_and_the_command_on_the_head(tmp_path: Path) -> None:
    words = ["python", "-c", "import sys; open('ran', 'w').write(repr(sys.argv[1:]))", "a b", "$c"]
    code, calls = run_slurm(tmp_path, *words)
    assert code == 0
    assert (tmp_path / "ran").read_text() == "['a b', '$c']"  # quoting survives three shells
    on_node = {call.split()[1]: call for call in calls if call.startswith("ray ")}
    assert set(on_node) == {"0", "1", "2"}
    assert all(
        "token 600 symmetric-run --address node4:6379 --min-nodes 3" in c for c in calls[-3:]
    )
    assert "--num-cpus 6" in on_node["0"]
    assert "--num-cpus 8" in on_node["1"]
    assert "srun --nodes=3" in calls
    assert not list(tmp_path.glob(".raybo-*"))  # the token is gone


def test_slurm_can_keep_evaluations_off_the_head(tmp_path: Path) -> None:
    _, calls = run_slurm(tmp_path, "true", HEAD_CPUS="0")
    assert any(call.startswith("ray 0") and "--num-cpus 0" in call for call in calls)


@pytest.mark.parametrize(("command", "extra"), [("false", {}), ("true", {"BROKEN": "1"})])
def test_slurm_reports_failure(tmp_path: Path, command: str, extra: dict[str, str]) -> None:
    code, _ = run_slurm(tmp_path, command, **extra)
    assert code != 0


def test_slurm_options_come_before_the_first_command() -> None:
    lines = (CLUSTER / "slurm.sbatch").read_text().splitlines()
    options = [i for i, line in enumerate(lines) if line.startswith("#SBATCH --")]
    first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    assert options
    assert max(options) < first
    assert "#SBATCH --ntasks-per-node=1" in lines


# Scripts and README ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["local.sh", "slurm.sbatch"])
def test_scripts_are_valid_bash(name: str) -> None:
    subprocess.run(["bash", "-n", str(CLUSTER / name)], check=True, timeout=60)


def test_no_file_ends_processes_by_name() -> None:
    script = (CLUSTER / "local.sh").read_text()
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("#"))
    assert not re.search(r"pkill|killall|ray stop", code)


def test_the_readme_names_every_file() -> None:
    readme = (CLUSTER / "README.md").read_text()
    files = {path.name for path in CLUSTER.iterdir() if path.is_file()} - {"README.md"}
    assert {name for name in files if f"({name})" in readme} == files
    for target in re.findall(r"\]\(([^)#]+)\)", readme):
        assert (CLUSTER / target).exists(), target


# The local cluster -----------------------------------------------------------------------------


def local(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "RAYBO_LOCAL_DIR": str(folder),
    }
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):
        environment.pop(name, None)
    return subprocess.run(
        ["bash", *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=150
    )


def test_the_local_script_explains_itself(tmp_path: Path) -> None:
    for words in ([], ["help"]):
        done = local("cluster/local.sh", *words, folder=tmp_path / "none")
        assert done.returncode == 2
        assert "cluster/local.sh down" in done.stderr
    for words in (["down"], ["env"], ["status"], ["kill", "1"], ["up", "0"], ["up", "x"]):
        done = local("cluster/local.sh", *words, folder=tmp_path / "none")
        assert done.returncode == 1
        assert done.stderr.startswith("local.sh: ")


@pytest.mark.ray
def test_a_study_runs_on_a_local_cluster_of_two_nodes(tmp_path_factory: Any) -> None:
    folder = Path("/tmp") / f"raybo-test-{os.getpid()}"  # short: Unix sockets lie below it
    storage = tmp_path_factory.mktemp("runs")
    smoke = f"python cluster/smoke.py --nodes 2 --trials 24 --storage {shlex.quote(str(storage))}"
    started = local("cluster/local.sh", "up", "2", "2", folder=folder)
    try:
        assert started.returncode == 0, started.stderr
        processes = re.findall(r"(\d+)$", (folder / "pids").read_text(), re.MULTILINE)
        done = local("-c", f'eval "$(cluster/local.sh env)" && {smoke}', folder=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "24 trials on 2 nodes" in done.stdout
    finally:
        ended = local("cluster/local.sh", "down", folder=folder)
    assert ended.returncode == 0, ended.stderr
    assert not folder.exists()
    assert len(processes) == 3
    deadline = time.monotonic() + 60
    while alive := living_groups() & set(processes):  # killed ones take a while to end
        assert time.monotonic() < deadline, alive
        time.sleep(0.1)


def living_groups() -> set[str]:
    """Groups with a process that has not ended."""
    table = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True).stdout
    rows = [line.split() for line in table.splitlines()]
    return {group for group, state in rows if not state.startswith("Z")}
