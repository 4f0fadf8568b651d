"""The image and the cluster of containers name what there is: commands, settings, ports, files, pinned packages."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from railgun.access.binding import ExposedError
from railgun.access.browsers import Hosts
from railgun.broker.artifacts import KAFKA_VERSION
from railgun.broker.commands import Ports, properties
from railgun.cli.frontend import FRONTEND
from railgun.cli.node import NODE
from railgun.cli.parser import parse
from railgun.cli.serve import SERVE
from railgun.config.access import check_address
from railgun.config.loading import load_settings
from railgun.config.processors import units_of
from railgun.health import DEFAULT_URL, URL_VARIABLE

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMMANDS = (SERVE, FRONTEND, NODE)
NODES = ("node-0", "node-1", "node-2")
MONITORING = {"prometheus", "grafana"}


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return found


def _services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = _compose()["services"]
    return found


def _lines(word: str) -> list[str]:
    joined = DOCKERFILE.replace("\\\n", " ")
    return [line.partition(" ")[2].strip() for line in joined.splitlines() if line.startswith(word + " ")]


def test_the_clusters_services() -> None:
    assert set(_services()) == {"kafka", "frontend", *NODES, *MONITORING}
    assert {
        name for name, each in _services().items() if each.get("profiles") == ["monitoring"]
    } == MONITORING
    assert _services()["kafka"]["image"] == f"apache/kafka:{KAFKA_VERSION}"


@pytest.mark.parametrize("name", ["frontend", *NODES])
def test_commands_and_settings_are_ones_that_railgun_takes(name: str) -> None:
    service = _services()[name]
    command, arguments = parse(COMMANDS, service["command"])
    assert command is not None
    assert arguments.broker == "kafka:9092"
    load_settings(None, service.get("environment", {}))


def test_each_node_has_a_name_and_units_of_its_own() -> None:
    names = set()
    for name in NODES:
        service = _services()[name]
        environment = {**service["environment"], "RAILGUN_CLUSTER__UNITS": service["command"][-1]}
        assert service["command"][-2] == "--units"
        cluster = load_settings(None, environment).cluster
        assert units_of(cluster.units) == 1
        names.add(cluster.node_name)
    assert len(names) == len(NODES)


def test_ports_and_health_checks_agree() -> None:
    frontend = _services()["frontend"]
    port = frontend["command"][-1].rpartition(":")[2]
    assert frontend["ports"] == [f"127.0.0.1:{port}:{port}"]
    [health] = re.findall(r"RAILGUN_HEALTH_URL=(\S+)", DOCKERFILE)
    assert health == f"http://127.0.0.1:{port}/healthz"
    for name in NODES:
        environment = _services()[name]["environment"]
        cluster = load_settings(None, environment).cluster
        assert environment["RAILGUN_HEALTH_URL"] == f"http://127.0.0.1:{cluster.metrics_port}/healthz"
        assert cluster.metrics_host == "0.0.0.0"
    assert set(_lines("EXPOSE")[0].split()) == {port, str(cluster.metrics_port)}
    assert URL_VARIABLE == "RAILGUN_HEALTH_URL"
    assert health == DEFAULT_URL
    assert json.loads(_lines("HEALTHCHECK")[0].partition(" CMD ")[2]) == ["python", "-m", "railgun.health"]


def test_whoever_needs_no_token_is_on_this_machine() -> None:
    """Every server starts, as it says itself that anybody may do anything, and none is published beyond loopback."""
    for name in ("frontend", *NODES):
        service = _services()[name]
        http = load_settings(None, service["environment"]).http
        assert http.anonymous
        check_address(name, "0.0.0.0", http)
        assert all(each.startswith("127.0.0.1:") for each in service.get("ports", []))


def test_the_cluster_with_a_secret_is_one_that_starts(tmp_path: Path) -> None:
    """As the comments say: one line out, those with the secret in."""
    text = (
        (ROOT / "docker-compose.yml")
        .read_text(encoding="utf-8")
        .replace('  RAILGUN_HTTP__ANONYMOUS: "true"\n', "")
    )
    for line in ("secrets: [tokens]", "RAILGUN_HTTP__TOKENS_FILE", "secrets:\n#   tokens:\n#     file:"):
        assert f"# {line}" in text
        text = text.replace(f"# {line}", line.replace("#", ""), 1)
    guarded = yaml.safe_load(text)
    assert guarded["secrets"] == {"tokens": {"file": "tokens.toml"}}
    for name in ("frontend", *NODES):
        service = guarded["services"][name]
        assert service["secrets"] == ["tokens"]
        http = load_settings(None, service["environment"]).http
        assert (http.tokens_file, http.anonymous) == ("/run/secrets/tokens", False)


def test_files_for_secrets_are_ones_that_the_images_user_may_read() -> None:
    """It says of which group they are to be: that of the user whom the image makes."""
    [uid] = re.findall(r"useradd --uid (\d+) ", DOCKERFILE)
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    said = " ".join(line.lstrip("# ") for line in text.partition("\nname:")[0].splitlines())
    assert f"chown root:{uid} and chmod 640 for tokens.toml, the certificate and the key" in said


def test_the_cluster_with_tls_is_one_that_starts() -> None:
    """As the comments say: beside the lines of the secret, those of TLS."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    text = text.replace('  RAILGUN_HTTP__ANONYMOUS: "true"\n', "")
    for line in (
        "secrets: [tokens, certificate, key]",
        "RAILGUN_HTTP__TOKENS_FILE",
        "RAILGUN_HTTP__TLS__CERTIFICATE",
        "RAILGUN_HTTP__TLS__KEY",
        "secrets:\n#   tokens:\n#     file: tokens.toml\n#   certificate:",
    ):
        assert f"# {line}" in text
        text = text.replace(f"# {line}", line.replace("#", ""), 1)
    for line in ("    file: server.crt", "  key:  # TLS", "    file: server.key"):
        assert f"# {line}" in text
        text = text.replace(f"# {line}", f" {line}", 1)
    secured = yaml.safe_load(text)
    assert {name: each["file"] for name, each in secured["secrets"].items()} == {
        "tokens": "tokens.toml",
        "certificate": "server.crt",
        "key": "server.key",
    }
    for name in ("frontend", *NODES):
        service = secured["services"][name]
        assert service["secrets"] == ["tokens", "certificate", "key"]
        http = load_settings(None, service["environment"]).http
        assert (http.tls.certificate, http.tls.key) == ("/run/secrets/certificate", "/run/secrets/key")
        assert not http.anonymous


def test_the_image_does_not_start_by_itself_on_a_network() -> None:
    command, arguments = parse(COMMANDS, json.loads(_lines("CMD")[0]))
    assert command is SERVE
    with pytest.raises(ExposedError, match="RAILGUN_HTTP__ANONYMOUS=true"):
        check_address(arguments.http, arguments.http.rpartition(":")[0], load_settings().http)


def test_data_outlives_containers() -> None:
    services = _services()
    for name in NODES:
        [volume] = services[name]["volumes"]
        place = volume.partition(":")[2]
        assert services[name]["command"][services[name]["command"].index("--data") + 1].startswith(place)
    sources = {volume.partition(":")[0] for each in services.values() for volume in each.get("volumes", [])}
    assert {each for each in sources if not each.startswith("./")} == set(_compose()["volumes"])


def _mounted(service: str) -> dict[str, Path]:
    """What of this tree a service has, by its path there."""
    volumes = [each.split(":") for each in _services()[service]["volumes"]]
    return {place: ROOT / source for source, place, *_ in volumes if source.startswith("./")}


def test_prometheus_has_its_rules_and_scrapes_every_process() -> None:
    """By a name that the process answers: without tokens a server refuses those that it does not know."""
    mounted = _mounted("prometheus")
    config = Path("/etc/prometheus/prometheus.yml")
    settings = yaml.safe_load(mounted[str(config)].read_text(encoding="utf-8"))
    assert [mounted[str(config.parent / rules)] for rules in settings["rule_files"]] == [
        ROOT / "config/alerts.yml"
    ]
    jobs = settings["scrape_configs"]
    assert all(job["job_name"].startswith("railgun") for job in jobs)
    targets = [target for job in jobs for each in job["static_configs"] for target in each["targets"]]
    asked = {}
    for name, _, port in (target.partition(":") for target in targets):
        environment = _services()[name]["environment"]
        assert Hosts(load_settings(None, environment).http.hosts).are_trusted(name.encode())
        asked[name] = environment["RAILGUN_CLUSTER__METRICS_PORT"] if name in NODES else "8080"
        assert asked[name] == port
    assert set(asked) == {"frontend", *NODES}


def test_grafana_has_the_dashboards_and_asks_prometheus() -> None:
    mounted = _mounted("grafana")
    [provider] = yaml.safe_load(
        mounted["/etc/grafana/provisioning/dashboards/railgun.yml"].read_text(encoding="utf-8")
    )["providers"]
    folder = mounted[provider["options"]["path"]]
    assert {path.name for path in folder.glob("*.json")} == {"on-call.json", "capacity.json"}
    [source] = yaml.safe_load(
        mounted["/etc/grafana/provisioning/datasources/railgun.yml"].read_text(encoding="utf-8")
    )["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    for name in MONITORING:
        assert all(each.startswith("127.0.0.1:") for each in _services()[name]["ports"])


def test_the_broker_is_set_up_like_the_local_one() -> None:
    own = dict(line.split("=", 1) for line in properties(Path("x"), Ports(1, 2)).splitlines())
    said = _services()["kafka"]["environment"]
    for variable, value in said.items():
        setting = variable.removeprefix("KAFKA_").lower().replace("_", ".")
        if setting in own and not re.search(r"listener|log.dirs", setting):
            assert own[setting] == value, setting


def test_the_image_is_pinned_and_nobodys() -> None:
    [pip] = [line for line in _lines("RUN") if "pip install" in line]
    words = shlex.split(pip)
    assert "--require-hashes" in words
    assert words[words.index("-r") + 1] == "requirements.lock"
    assert _lines("USER") == ["railgun"]
    assert re.fullmatch(r"python:3\.\d+-\S+", _lines("FROM")[0])
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for line in _lines("COPY"):
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists()
            assert f"!{source}" in kept
    command, _ = parse(COMMANDS, json.loads(_lines("CMD")[0]))
    assert command is SERVE


def _has_compose() -> bool:
    docker = shutil.which("docker")
    return (
        docker is not None
        and subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not _has_compose(), reason="docker compose is not here")
def test_docker_takes_it() -> None:
    subprocess.run(["docker", "compose", "config", "--quiet"], cwd=ROOT, check=True, capture_output=True)
