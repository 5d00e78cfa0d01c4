package torch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
)

// photosIn makes a folder of three images of two classes.
func photosIn(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"ant/0.png", "ant/1.png", "bee/0.png"} {
		path := filepath.Join(dir, name)
		picture := image.NewGray(image.Rect(0, 0, 4, 3))
		picture.Set(1, 1, color.White)
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		var f *os.File
		if err == nil {
			f, err = os.Create(path)
		}
		if err == nil {
			err = errors.Join(png.Encode(f, picture), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// probeSelf runs this program with the flag of a probe, as Python does.
func probeSelf(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	out, err := exec.CommandContext(testContext(t), os.Args[0], append([]string{probeFlag}, args...)...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(out), err
}

func TestChild_AProbeSaysLengthAndClasses(t *testing.T) {
	dir := t.TempDir()
	photosIn(t, dir)
	quoted, _ := json.Marshal(map[string]any{"root": dir, "transform": nil})
	for _, c := range []struct {
		args       []string
		want, fail string
	}{
		{[]string{"photos", string(quoted)}, `{"len":3,"classes":["ant","bee"]}`, ""},
		{[]string{"squares", `{"n": 12}`}, `{"len":12,"classes":null}`, ""},
		{[]string{"goexit"}, "", "runtime.Goexit ended the function"},
		{[]string{"squares"}, `{"len":0,"classes":null}`, ""},
		{[]string{"lettered"}, `{"len":3,"classes":["a","b","c"]}`, ""},
		{[]string{"nobody"}, "", `data set "nobody" is not registered`},
		{nil, "", "NAME [ARGS]"},
		{[]string{"squares", "{", "x"}, "", "NAME [ARGS]"},
		{[]string{"squares", "{"}, "", `keyword arguments "{": unexpected EOF`},
		{[]string{"squares", "[1]"}, "", "want a JSON object"},
		{[]string{"squares", "{} {}"}, "", "more than one value"},
		{[]string{"squares", `{"n": 1e999}`}, "", "value out of range"},
		{[]string{"photos", `{"root": "/nowhere"}`}, "", "/nowhere: no such file or directory"},
		{[]string{"photos", `{"rot": "x"}`}, "", `add a field tagged torch:"rot"`},
	} {
		got, err := probeSelf(t, c.args...)
		if strings.TrimSpace(got) != c.want || (err == nil) != (c.fail == "") ||
			err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%q: %s, %v", c.args, got, err)
		}
	}
}

// lettered has classes, and is closed.
type lettered struct{ *squares }

func (lettered) Classes() []string { return []string{"a", "b", "c"} }

func openLettered(context.Context, Worker) (data.Dataset, error) {
	return lettered{&squares{n: 3}}, nil
}

// TestChild_AProbeIsAsDocumented runs the Python of docs/torch.md, and loads the data set that the
// probe describes.
func TestChild_AProbeIsAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/torch.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "### Length and classes")
	_, code, _ := strings.Cut(after, "```python\n")
	code, _, ok := strings.Cut(code, "```")
	if !ok {
		t.Fatal("the page has no Python there")
	}
	eachTorch(t, func(t *testing.T, py peerPython) {
		dir := t.TempDir()
		photosIn(t, filepath.Join(dir, "pictures"))
		script := code + `
import torch
if __name__ == "__main__":
    torch.multiprocessing.set_executable("./loader")
    photos = Photos("pictures")
    images, labels = next(iter(torch.utils.data.DataLoader(photos, batch_size=3, num_workers=1, multiprocessing_context="spawn")))
    print(len(photos), photos.classes, tuple(images.shape), labels.tolist())
`
		self, err := os.Executable()
		if err == nil {
			err = os.Symlink(self, filepath.Join(dir, "loader"))
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "script.py"), []byte(script), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(testContext(t), py.path, "script.py")
		cmd.Dir, cmd.Env = dir, pythonEnv()
		var stderr strings.Builder // see TRACKER_RACE in scripts/userscripts
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if want := "3 ['ant', 'bee'] (3, 3, 3, 4) [0, 0, 1]\n"; err != nil || string(out) != want {
			t.Errorf("%s, not %s: %v\n%s", out, want, err, &stderr)
		}
	})
}
