package torch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/test/testutil"
)

// dirsEnv has a process make and remove directories for temporary files until it is killed.
const dirsEnv = "SHOAL_TORCH_TEST_DIRS"

func init() {
	if parent := os.Getenv(dirsEnv); parent != "" {
		for i := 0; ; i++ {
			d := newTempDir([]string{"TMPDIR=" + parent})
			if i == 0 {
				fmt.Println("begun")
			}
			d.release()
		}
	}
}

// A directory says whose it was at whatever moment its process is killed.
func TestTempDir_KilledAtAnyMomentIsSwept(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 60 {
		parent := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Env = append(os.Environ(), dirsEnv+"="+parent)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(1000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if left, _ := filepath.Glob(parent + "/*"); len(left) > 0 {
			found++
		}
		sweepTempDirs(parent)
		if left, _ := filepath.Glob(parent + "/*"); len(left) > 0 {
			t.Fatalf("left after the next program: %v", left)
		}
	}
	if found == 0 {
		t.Error("no process was killed while it had a directory")
	}
}

// Directories of living processes stay, and those of which nobody can say whose they are.
func TestTempDir_SparesTheLivingAndTheUnknown(t *testing.T) {
	parent := t.TempDir()
	mine, err := markOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	dead := testutil.Value(endedOwner())(t)
	for name, stays := range map[string]bool{
		tempPrefix + mine + "-a": true, tempPrefix + dead + "-b": false, tempPrefix + "python": true,
		tempPrefix + namePrefix + "nonsense": true, tempPrefix + "c/" + mine: true, tempPrefix + "d/" + dead: false,
	} {
		if err := os.MkdirAll(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
		sweepTempDirs(parent)
		if _, err := os.Stat(filepath.Join(parent, name)); (err == nil) != stays {
			t.Errorf("%s: %v, and it should stay: %t", name, err, stays)
		}
	}
}
