package torch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
)

// A peerPython is an interpreter: its path, and the version of its PyTorch or of itself.
type peerPython struct{ path, version string }

// torchPythons are the interpreters with a PyTorch: those of SHOAL_TORCH_PYTHONS, paths with colons
// between them, or else python3.
var torchPythons = sync.OnceValue(func() []peerPython {
	return found("SHOAL_TORCH_PYTHONS", "import sys, torch; print(sys.executable, torch.__version__)")
})

// plainPythons are interpreters for tests without PyTorch: those of SHOAL_PYTHONS, or else python3.
var plainPythons = sync.OnceValue(func() []peerPython {
	return found("SHOAL_PYTHONS",
		"import sys, multiprocessing.synchronize; print(sys.executable, sys.version.split()[0])")
})

// withoutLibuv reports whether py has Debian's build of a PyTorch without libuv. Its TCPStore asks
// for libuv unless use_libuv=False is given, and its torchrun does not give it.
func (py peerPython) withoutLibuv() bool { return strings.HasSuffix(py.version, "+debian") }

// environ returns the environment for a process that py starts, with further variables.
func (py peerPython) environ(more ...string) []string {
	env := append(os.Environ(), "OMP_NUM_THREADS=1")
	if py.withoutLibuv() {
		env = append(env, "USE_LIBUV=0")
	}
	return append(env, more...)
}

// eachTorchrun runs a test with every PyTorch whose torchrun can start something.
func eachTorchrun(t *testing.T, test func(t *testing.T, py peerPython)) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		if py.withoutLibuv() {
			unable(t, "its torchrun asks for libuv, which this PyTorch was built without")
		}
		test(t, py)
	})
}

// found are the interpreters of an environment variable that can run code, which prints their
// versions.
func found(variable, code string) (all []peerPython) {
	paths := filepath.SplitList(os.Getenv(variable))
	if len(paths) == 0 {
		paths = []string{"python3"}
	}
	for _, p := range paths {
		out, err := exec.Command(p, "-c", code).Output()
		path, version, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
		switch {
		case ok && err == nil:
			all = append(all, peerPython{path, version})
		case interop: // make interop has looked at it
			panic(fmt.Sprintf("%s of %s: %v", p, variable, err))
		}
	}
	return all
}

func versions(all []peerPython) (list []string) {
	for _, py := range all {
		list = append(list, py.version)
	}
	return list
}

// eachTorch runs a test with every PyTorch that is found, and counts it.
func eachTorch(t *testing.T, test func(t *testing.T, py peerPython)) {
	t.Helper()
	each(t, torchPythons(), "python3 has no PyTorch (make interop installs one, SHOAL_TORCH_PYTHONS names one)", test)
}

// eachPython runs a test with every Python that is found, whether it has a PyTorch or not, and
// counts it.
func eachPython(t *testing.T, test func(t *testing.T, py peerPython)) {
	t.Helper()
	each(t, plainPythons(), "there is no python3 (SHOAL_PYTHONS names others)", test)
}

func each(t *testing.T, all []peerPython, missing string, test func(t *testing.T, py peerPython)) {
	t.Helper()
	if len(all) == 0 {
		if interop {
			t.Fatal(missing)
		}
		t.Skip("interoperability was not tested: " + missing)
	}
	for _, py := range all {
		cell(t, py.version, func(t *testing.T) { test(t, py) })
	}
}

// testContext ends calls that hang.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A talk is a conversation with a Peer of testdata/plain.py or peer.py.
type talk struct {
	t   testing.TB
	ctx context.Context
	p   *Process
	*Conn
}

// converse starts peer.py with a sharing strategy of PyTorch's own.
func converse(t testing.TB, py peerPython, opts Options, theirs string) *talk {
	t.Helper()
	return talkTo(t, py, opts, "peer:run", theirs)
}

// chat starts plain.py.
func chat(t testing.TB, py peerPython, opts Options) *talk {
	t.Helper()
	return talkTo(t, py, opts, "plain:run")
}

func talkTo(t testing.TB, py peerPython, opts Options, target string, args ...any) *talk {
	t.Helper()
	ctx := testContext(t)
	p, err := Python{Path: py.path, Dir: "testdata", Options: opts, Env: pythonEnv()}.Spawn(ctx, target, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return &talk{t, ctx, p, p.Conn}
}

// pythonEnv keeps Python from writing beside its sources.
func pythonEnv() []string {
	return append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
}

// ask sends a request and returns the answer.
func (k *talk) ask(request ...any) any {
	k.t.Helper()
	if err := k.Send(k.ctx, python.Tuple(request)); err != nil {
		k.t.Fatalf("ask %v: %v", request[0], err)
	}
	v, err := k.Recv(k.ctx)
	if err != nil {
		k.t.Fatalf("answer to %v: %v", request[0], err)
	}
	return v
}

// asked sends a request and returns the answer as a T.
func asked[T any](k *talk, request ...any) (v T) {
	k.t.Helper()
	if err := assign(&v, k.ask(request...)); err != nil {
		k.t.Fatalf("answer to %v: %v", request[0], err)
	}
	return v
}

// bye ends the conversation and wants a good end of the process.
func (k *talk) bye() {
	k.t.Helper()
	k.Close()
	if err := k.p.Wait(k.ctx); err != nil {
		k.t.Errorf("%+v", err)
	}
}
