"""A site's Kafka and Pulsar that ask for TLS and a password or a token serve whom the site file lets in, and nobody
else.
"""

import subprocess
from base64 import urlsafe_b64encode
from hashlib import sha256
from hmac import digest

import pytest
from uncalibrated import Uncalibrated

from bench.cli.terminal import ignore
from bench.config.scenario import Grid, Scenario, Search, Timing
from bench.config.site import Site
from bench.errors import HarnessError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.runner.run import RunOptions, run
from bench.services.java import java
from bench.services.maven_jars import download_jars
from bench.services.ports import LOOPBACK, free_ports
from bench.services.python_environments import missing_reason
from bench.storage.run_folder import RunFolder, read_results, read_trials
from bench.units import Rate, Seconds, Share, Size
from producers.kafka import server as kafka_server
from producers.kafka.site import KafkaSecurity, KafkaSite
from producers.pulsar import server as pulsar_server
from producers.pulsar.admin import Admin
from producers.pulsar.site import PulsarSite

pytestmark = pytest.mark.real

PASSWORD = "correct horse"
SIGNED_WITH = b"x" * 32


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """A folder with a certificate for loopback that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *files]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    (folder / "both.pem").write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    (folder / "password").write_text(f"{PASSWORD}\n")
    (folder / "wrong").write_text("battery staple\n")
    (folder / "token.secret").write_bytes(SIGNED_WITH)
    (folder / "token").write_text(token("bench", SIGNED_WITH))
    (folder / "forged").write_text(token("bench", b"y" * 32))
    return folder


def token(subject, secret):
    """A JSON web token, signed with HMAC-SHA256 (RFC 7519)."""
    parts = [b'{"alg":"HS256"}', b'{"sub":"%s"}' % subject.encode()]
    signed = b".".join(urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    return (signed + b"." + urlsafe_b64encode(digest(secret, signed, sha256)).rstrip(b"=")).decode()


@pytest.fixture(scope="module")
def secured_kafka(env, tls, tmp_path_factory):
    """A real Kafka whose clients come by SASL_SSL."""
    folder = tmp_path_factory.mktemp("kafka")
    port, controller, secured = free_ports(3)
    text = kafka_server._properties(kafka_server.KafkaBroker(), folder, port, controller)
    listeners = {f"PLAINTEXT://{LOOPBACK}:{port}": f"PLAINTEXT://{LOOPBACK}:{port},SASL_SSL://{LOOPBACK}:{secured}"}
    listeners["PLAINTEXT:PLAINTEXT,"] = "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,"
    for old, new in listeners.items():
        text = text.replace(old, new)
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_bench="{PASSWORD}";'
    text += f"listener.name.sasl_ssl.plain.sasl.jaas.config={jaas}\nsasl.enabled.mechanisms=PLAIN\n"
    text += f"ssl.keystore.type=PEM\nssl.keystore.location={tls / 'both.pem'}\n"
    (folder / "server.properties").write_text(text)
    (folder / "log4j2.properties").write_text(kafka_server._LOGGING)
    class_path = download_jars("kafka", env.cache, env.note) / "*"
    command = [java(), *kafka_server._java_options(kafka_server.KafkaBroker(), folder), "-cp", str(class_path)]
    kafka_server._format(env.supervisor, command, folder)
    command += ["kafka.Kafka", str(folder / "server.properties")]
    child = env.supervisor.start(command, name="kafka-secured", role="source", cwd=folder)
    answers = kafka_server._probe()
    child.wait_ready(lambda: answers(port), 60)
    yield f"{LOOPBACK}:{secured}"
    child.stop()


@pytest.fixture(scope="module")
def secured_pulsar(env, tls, tmp_path_factory):
    """A real Pulsar that asks for a token, over TLS; its addresses."""
    folder = tmp_path_factory.mktemp("pulsar")
    broker = pulsar_server.PulsarBroker(heap_bytes=2**29)
    port, web, bookie, secured, secured_web = free_ports(5)
    text = pulsar_server._properties(broker, port, web)
    more = {
        "brokerServicePortTls": secured,
        "webServicePortTls": secured_web,
        "tlsCertificateFilePath": tls / "cert.pem",
        "tlsKeyFilePath": tls / "key.pem",
        "tlsTrustCertsFilePath": tls / "cert.pem",
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": f"file://{tls / 'token.secret'}",
        "superUserRoles": "bench",
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": f"file://{tls / 'token'}",
    }
    text += "".join(f"{name}={value}\n" for name, value in more.items())
    (folder / "standalone.conf").write_text(text)
    (folder / "log4j2.properties").write_text(pulsar_server._LOGGING)
    class_path = download_jars("pulsar", env.cache, env.note) / "*"
    command = [java(), *pulsar_server._java_options(broker, folder), "-cp", str(class_path)]
    command += pulsar_server._starter(broker, folder, bookie)
    child = env.supervisor.start(command, name="pulsar-secured", role="source", cwd=folder)
    service, admin = f"pulsar+ssl://{LOOPBACK}:{secured}", f"https://{LOOPBACK}:{secured_web}"
    site = PulsarSite(service, admin, ca_file=str(tls / "cert.pem"), token_file=str(tls / "token"))
    child.wait_ready(lambda: pulsar_server._answers(site), 90)
    yield service, admin
    child.stop()


@pytest.fixture(scope="module")
def secured_site(secured_kafka, secured_pulsar, tls):
    """A site with both brokers, and with what lets us in."""
    ca_file, token_file = str(tls / "cert.pem"), str(tls / "token")
    security = KafkaSecurity("bench", str(tls / "password"), ca_file)
    pulsar = PulsarSite(*secured_pulsar, ca_file=ca_file, token_file=token_file)
    return Site(sections={"kafka": KafkaSite(secured_kafka, security), "pulsar": pulsar})


def run_short(framework, sources, site, folder, env):
    """A short run of one cell of each source; its results, the drained trials by source, and its folder."""
    scenario = Scenario(
        "secured",
        tuple(f"{framework}/{source}" for source in sources),
        Grid((Size(10_000),)),
        search=Search("bisection", Share(0.5), Seconds(8), start=Rate(50), highest=Rate(200)),  # it keeps up
        timing=Timing(Seconds(0.5), Seconds(2), Seconds(10), warm_up=Seconds(0)),
    )
    store = RunFolder.create(folder, "secured")
    options = RunOptions("bench run", env.cache, folder / "children", backend=Uncalibrated)
    run(scenario, site, store, ignore, options)
    drained = [entry for entry in read_trials(store.folder) if entry.measurement.drained]
    trials = {source: [entry.measurement for entry in drained if entry.cell.source == source] for source in sources}
    return read_results(store.folder), trials, store.folder


@pytest.mark.parametrize(
    ("framework", "sources"),
    [
        ("python", ("kafka", "pulsar")),
        ("spark", ("kafka", "pulsar")),
        ("flink", ("kafka",)),
        ("bytewax", ("kafka",)),
    ],
    ids=["python", "spark", "flink", "bytewax"],
)
def test_secured_brokers_serve_whom_the_site_lets_in(framework, sources, secured_site, tls, tmp_path, env):
    """Every message comes through, and neither password nor token stands in a log, record, report or export."""
    environment = registry.framework_plugin(framework).environment
    if environment is not None and (reason := missing_reason(environment, env.cache)) is not None:
        pytest.skip(reason)
    results, trials, folder = run_short(framework, sources, secured_site, tmp_path, env)
    for source in sources:
        check_trials(trials[source], results)
    if framework == "python":
        write_reports(folder)
    texts = [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]
    assert not [secret for secret in (PASSWORD, (tls / "token").read_text()) if any(secret in text for text in texts)]


def check_trials(trials, results):
    assert trials, [result.reason for result in results]  # no verdict is asked for: other work would be one
    assert all(trial.processed == trial.sent > 0 and (trial.lost, trial.duplicated) == (0, 0) for trial in trials)


def write_reports(folder):
    """Write all of them into the run's folder."""
    for _, plugin in registry.report_plugins():
        if plugin.write is not None and plugin.kind == "map":
            plugin.write(folder)


def test_a_forged_token_is_refused(secured_pulsar, tls):
    """In one line that names the address."""
    site = PulsarSite(*secured_pulsar, ca_file=str(tls / "cert.pem"), token_file=str(tls / "forged"))
    with pytest.raises(HarnessError, match=f"{secured_pulsar[1]} refuses .*401"):
        Admin(site).make_topic("x", 1)


def test_an_unknown_certificate_is_refused(secured_pulsar, tls):
    """Whom the site does not trust is told nothing."""
    site = PulsarSite(*secured_pulsar, token_file=str(tls / "token"))
    with pytest.raises(HarnessError, match="CERTIFICATE_VERIFY_FAILED"):
        Admin(site).make_topic("x", 1)


def test_a_wrong_password_is_refused(secured_kafka, tls, tmp_path, env, monkeypatch):
    """A wrong password is an error before the cell begins."""
    security = KafkaSecurity("bench", str(tls / "wrong"), str(tls / "cert.pem"))
    monkeypatch.setattr(env, "site", Site(sections={"kafka": KafkaSite(secured_kafka, security)}))
    source = registry.make_source("kafka", {})
    with pytest.raises(HarnessError, match="kafka"):
        source.open(Cell("python", "kafka", 10_000, 0.0), env)
    source.close()
