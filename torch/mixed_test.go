package torch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/test/testutil"
)

// mixed runs testdata/mixed.py, and returns its output and its stderr.
func mixed(t *testing.T, py, program string, flags ...string) (said map[string]json.RawMessage, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), py, append(flags, "testdata/mixed.py", program)...)
	cmd.Env = pythonEnv()
	var text strings.Builder
	cmd.Stderr = &text
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, text.String())
	}
	return said, text.String()
}

// TestChild_OtherProcessesArePythons starts processes of every kind with this program as
// executable. None of them is Go's, and each must be the same as without Go.
func TestChild_OtherProcessesArePythons(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		want, complaints := mixed(t, py.path, "-", "-O", "-W", "ignore")
		got, stderr := mixed(t, py.path, os.Args[0], "-O", "-W", "ignore")
		for name := range want {
			plain := strings.ReplaceAll(string(want[name]), `["-"]`, `["`+os.Args[0]+`"]`)
			if string(got[name]) != plain {
				t.Errorf("%s: %s, and without Go %s", name, got[name], plain)
			}
		}
		if len(want) < 10 || len(got) != len(want) {
			t.Errorf("%v, and without Go %v", got, want)
		}
		if n, m := strings.Count(stderr, "Error"), strings.Count(complaints, "Error"); n != m || n == 0 {
			t.Errorf("complains %d times, and without Go %d times:\n%s", n, m, stderr)
		}
	})
}

// TestChild_OtherProcessesSeeTheirParentsEnd kills a script, and wants the Python in its process to
// notice.
func TestChild_OtherProcessesSeeTheirParentsEnd(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		said := filepath.Join(t.TempDir(), "child.alone")
		cmd := exec.CommandContext(testContext(t), py.path, "testdata/mixed.py", os.Args[0], said)
		cmd.Env = pythonEnv()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		there := func(path string) func() bool {
			return func() bool { _, err := os.Stat(path); return err == nil }
		}
		testutil.Eventually(t, there(said+".begun"), "waited in vain for the process to begin")
		if there(said)() {
			t.Error("the process has seen its parent end too early")
		}
		cmd.Process.Kill()
		cmd.Wait()
		testutil.Eventually(t, there(said), "waited in vain for the process to see its parent's end")
	})
}

// TestChild_OtherProcessesHaveTheVirtualEnvironment starts a script by each path that its
// interpreter may have. One of the paths is a link out of the environment. The processes must have
// the same path.
func TestChild_OtherProcessesHaveTheVirtualEnvironment(t *testing.T) {
	code := "import multiprocessing, os, sys\n" +
		"def tell(): print(sys.executable, sys.prefix, 'only_there' in sys.modules, flush=True)\n" +
		"if __name__ == '__main__':\n" +
		"    if sys.argv[2:]: os.environ['PATH'] = '/nowhere'\n" +
		"    tell(); multiprocessing.set_executable(sys.argv[1])\n" +
		"    p = multiprocessing.get_context('spawn').Process(target=tell); p.start(); p.join()\n"
	eachPython(t, func(t *testing.T, py peerPython) {
		home := t.TempDir()
		if out, err := exec.CommandContext(testContext(t), py.path, "-m", "venv", "--without-pip",
			filepath.Join(home, "env")).CombinedOutput(); err != nil {
			t.Skipf("this Python makes no virtual environments: %v\n%s", err, out)
		}
		script, bin := filepath.Join(home, "script.py"), filepath.Join(home, "env/bin")
		site, err := filepath.Glob(filepath.Join(home, "env/lib/python3*/site-packages"))
		if err != nil || len(site) != 1 {
			t.Fatal(site, err)
		}
		for path, text := range map[string]string{script: code,
			site[0] + "/always.pth": "import only_there\n", site[0] + "/only_there.py": ""} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for name, run := range map[string]string{
			"absolute": `"$BIN/python" "$@"`,
			"by PATH":  `PATH="$BIN:$PATH" python "$@"`,
			"relative": `cd "$BIN" && ../bin/python "$@"`,
			"active":   `VIRTUAL_ENV="$BIN/.." PATH="$BIN:$PATH" python "$@" without-path`,
		} {
			cmd := exec.CommandContext(testContext(t), "bash", "-c", run, "bash", script, os.Args[0])
			cmd.Env = append(pythonEnv(), "BIN="+bin)
			out, err := cmd.Output()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if err != nil || len(lines) != 2 || !strings.Contains(lines[1], " "+filepath.Join(home, "env")+" True") {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	})
}

// TestChild_GoAndPythonLoadTogether has a training set of Go's, a validation set of Python's with
// functions of the script, and mp.spawn, in one script.
func TestChild_GoAndPythonLoadTogether(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		cmd := exec.CommandContext(testContext(t), py.path, "testdata/together.py", os.Args[0])
		cmd.Env = pythonEnv()
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		want := `{"together": [` +
			`[[0, 1], [[0.0, 0.0], [1.0, 1.0]], {"word": "w", "length": 1, "seed": 100}], ` +
			`[[2, 3], [[4.0, 4.0], [9.0, 9.0]], {"word": "www", "length": 3, "seed": 100}], ` +
			`[[4, 5], [[16.0, 16.0], [25.0, 25.0]], {"word": "wwww", "length": 4, "seed": 100}]], "spawned": 0}`
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%v: %s, not %s\n%s", err, got, want, stderr.String())
		}
	})
}

// TestChild_JoblibWorks runs a script with joblib, whose processes are Python's.
func TestChild_JoblibWorks(t *testing.T) {
	tried := 0
	for _, py := range slices.Concat(plainPythons(), torchPythons()) {
		if exec.Command(py.path, "-c", "import joblib").Run() != nil {
			continue
		}
		tried++
		cmd := exec.CommandContext(testContext(t), py.path, "testdata/jobs.py", os.Args[0])
		cmd.Env, cmd.Stderr = pythonEnv(), os.Stderr
		out, err := cmd.Output()
		jobs := " [(0, True), (1, True), (4, True), (9, True)]\n"
		if want := "loky" + jobs + "multiprocessing" + jobs + "threading" + jobs; string(out) != want || err != nil {
			t.Errorf("%s: %v: %s", py.version, err, out)
		}
	}
	if tried == 0 {
		t.Skip("no Python has joblib")
	}
}
