"""Several hosts on this machine, for tests. A host has processes, a network, a name, a /dev/shm and an /etc/hosts of
its own; all share the file systems, as the nodes of a cluster do. A bridge joins their networks, and a link can be cut.

enter() comes first, before gm is imported: it starts the test again in namespaces of its own, which end with it, and
all that is in them with them: processes, links, mounts. So nothing is left of a test, however it ends.

As a program, hosts.py NUMBER COMMAND... runs a command beside so many hosts, host1, host2, ..., on which mpirun --host
and gpumem-scaling --hosts start ranks."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NETWORK = "10.77.0.0/24"
BRIDGE = "10.77.0.1" # of the test itself
OUTSIDE = "GPUMEM_TEST_OUTSIDE" # the network namespace that the test was started in

# The first process of a group of namespaces reaps those whose parents have ended, as bash does.
FIRST = ["--fork", "--kill-child", "--mount-proc", "bash", "-c"]


def skip_all(reason):
    print(f"1..0 # SKIP {reason}", flush=True)
    sys.exit(0)


def call(*words):
    subprocess.run(words, check=True)


def enter():
    """Starts this test again in namespaces of its own. Skips it where that is refused, or a tool is missing."""
    network = os.readlink("/proc/self/ns/net")
    if os.environ.get(OUTSIDE, network) != network:
        # another Python takes over: gm.py
        if subprocess.run(["ip", "link", "show", "hosts"], capture_output=True, check=False).returncode:
            call("ip", "link", "set", "lo", "up")
            call("ip", "link", "add", "hosts", "type", "bridge")
            call("ip", "address", "add", f"{BRIDGE}/24", "dev", "hosts")
            call("ip", "link", "set", "hosts", "up")
        return
    missing = [tool for tool in ("unshare", "nsenter", "ip", "mount", "pgrep") if not shutil.which(tool)]
    if missing:
        skip_all(f"no {', '.join(missing)}")
    unshare = ["unshare", "--pid", "--mount", "--net", "--uts", "--ipc", *FIRST]
    tried = subprocess.run([*unshare, "ip link add x type bridge && ip link add y type veth peer name z && "
                                      "mount -t tmpfs none /mnt"],
                           capture_output=True, text=True, check=False)
    if tried.returncode:
        skip_all(f"namespaces are refused: {(tried.stderr.strip().splitlines() or ['?'])[-1]}")
    os.environ[OUTSIDE] = network
    os.execvp("unshare", [*unshare, '"$@"; exit $?', "bash", sys.executable, "-B", *sys.argv])


class Host:
    """A host with an address in NETWORK."""

    def __init__(self, name, number, names):
        self.name, self.address, self.link = name, f"10.77.0.{10 + number}", f"link{number}"
        lines = "".join(f"10.77.0.{10 + index} {other}\n" for index, other in names.items())
        # the hosts bind it over /etc/hosts
        self.etc_hosts = tempfile.NamedTemporaryFile("w", prefix="hosts.", delete=True)
        self.etc_hosts.write(f"127.0.0.1 localhost\n{BRIDGE} {os.uname().nodename}\n{lines}")
        self.etc_hosts.flush()
        self.start()

    def start(self):
        set_up = (f"hostname {self.name} && mount -t tmpfs -o mode=1777 tmpfs /dev/shm && "
                  f"mount --bind {self.etc_hosts.name} /etc/hosts && echo up")
        self.process = subprocess.Popen(["unshare", "--pid", "--mount", "--net", "--uts", "--ipc", *FIRST,
                                         f"{set_up}; trap : TERM; while :; do sleep 1000; done"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        if self.process.stdout.readline() != "up\n":
            raise RuntimeError(f"{self.name} cannot be set up")
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
            self.first = children.read().split()[0]
        call("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.first)
        call("ip", "link", "set", self.link, "master", "hosts", "up")
        mac = f"02:00:00:00:00:{int(self.link[4:]):02x}" # the same after a crash: others remember it
        for words in (("link", "set", "eth0", "address", mac), ("address", "add", f"{self.address}/24", "dev", "eth0"),
                      ("link", "set", "lo", "up"), ("link", "set", "eth0", "up")):
            call(*self.inside(), "ip", *words)

    def inside(self):
        """The words before a command that runs on this host, in the folder of the one who calls it."""
        return ["nsenter", "-t", self.first, "--pid", "--mount", "--net", "--uts", "--ipc", f"--wdns={os.getcwd()}"]

    def cut(self):
        call("ip", "link", "set", self.link, "down")

    def heal(self):
        call("ip", "link", "set", self.link, "up")

    def end(self):
        """The host crashes: all its processes end at once, and so does its network."""
        os.kill(int(self.first), signal.SIGKILL)
        self.process.wait()

    def processes(self, name):
        """The processes of a program that run on this host."""
        ran = subprocess.run([*self.inside(), "pgrep", "-x", name], capture_output=True, text=True, check=False)
        return ran.stdout.split()


def up(names):
    """Starts hosts with these names."""
    numbered = dict(enumerate(names, 1))
    return [Host(name, number, numbered) for number, name in numbered.items()]


def agent(path, hosts):
    """Makes a program that runs a command on one of the hosts as ssh does, for an mpirun beside them: agent HOST
    COMMAND..."""
    cases = "".join(f"{host.name}) first={host.first} ;;\n" for host in hosts)
    with open(path, "w") as out:
        out.write(f'#!/bin/bash\ncase $1 in\n{cases}*) exit 255 ;;\nesac\nshift\n'
                  'exec nsenter -t "$first" --pid --mount --net --uts --ipc --wdns=/ bash -c "$*"\n')
    os.chmod(path, 0o755)
    return os.path.abspath(path)


def launching(path, hosts):
    """The settings with which an mpirun beside the hosts starts ranks on them, by agent(path, hosts)."""
    return {"OMPI_MCA_plm_rsh_agent": agent(path, hosts), "OMPI_MCA_plm": "rsh", "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
            "OMPI_MCA_oob_tcp_if_include": NETWORK, "OMPI_MCA_btl_tcp_if_include": NETWORK}


def wait_for(what, limit):
    """Waits until what() is true, limit seconds at most. Returns its value."""
    until = time.monotonic() + limit
    value = what()
    while not value and time.monotonic() < until:
        time.sleep(0.1)
        value = what()
    return value


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        sys.exit("usage: hosts.py NUMBER COMMAND...")
    enter()
    all_hosts = up([f"host{number + 1}" for number in range(int(sys.argv[1]))])
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(subprocess.run(sys.argv[2:], env=os.environ | launching(f"{folder}/agent", all_hosts),
                                check=False).returncode)


if __name__ == "__main__":
    main()
