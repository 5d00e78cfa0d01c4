package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// newRepository returns a repository with one commit.
func newRepository(t *testing.T) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		if value, ok := os.LookupEnv(name); ok { // as in a hook
			t.Setenv(name, value)
			os.Unsetenv(name)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "Shoal")
		t.Setenv("GIT_"+who+"_EMAIL", "shoal@example.com")
	}
	r := repository(t.TempDir())
	mustGit(t, r, "init", "--quiet", "--initial-branch=main")
	commitFile(t, r, tablePath, example)
	return r
}

func mustGit(t *testing.T, r repository, args ...string) string {
	t.Helper()
	out, err := r.git(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func commitFile(t *testing.T, r repository, name, text string) string {
	t.Helper()
	file := filepath.Join(string(r), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	mustGit(t, r, "add", "--all")
	mustGit(t, r, "commit", "--quiet", "--message", "write "+name)
	return mustGit(t, r, "rev-parse", "HEAD")
}

func mustMark(t *testing.T, r repository, since string) mark {
	t.Helper()
	m, err := r.setMark(since)
	if err != nil {
		t.Fatal(err)
	}
	if got := turnOf(r); got.since != m.since || got.group != m.group {
		t.Fatalf("after the mark %+v: got the turn %+v", m, got)
	}
	return m
}

func TestRepository_LandingsFollowEachOther(t *testing.T) {
	r := newRepository(t)
	landed := mustGit(t, r, "rev-parse", "HEAD")
	for _, group := range []int{1, 2, 3, 1} {
		commitFile(t, r, "a", landed)
		commitFile(t, r, "b", landed)
		if m := mustMark(t, r, landed); m.group != group || m.since != landed {
			t.Errorf("got %+v, want group %d since %s", m, group, landed)
		}
		landed = mustGit(t, r, "rev-parse", "HEAD")
	}
}

// TestRepository_ARefusedLandingIsMarkedAgain has a mark on a commit that did not land.
func TestRepository_ARefusedLandingIsMarkedAgain(t *testing.T) {
	r := newRepository(t)
	landed := mustGit(t, r, "rev-parse", "HEAD")
	commitFile(t, r, "a", "1")
	first := mustMark(t, r, landed)
	commitFile(t, r, "a", "2")
	if now := turnOf(r); !now.everything() {
		t.Errorf("a commit behind the mark: got %+v, want everything", now)
	}
	if again := mustMark(t, r, landed); again != first {
		t.Errorf("got %+v, want %+v", again, first)
	}
	if twice := mustMark(t, r, landed); twice != first {
		t.Errorf("got %+v, want %+v", twice, first)
	}
	if out := mustGit(t, r, "log", "-1", "--format=%(trailers)"); len(out) > 80 {
		t.Errorf("got the trailers %q, want one of each", out)
	}
}

func TestRepository_AMarkLeavesTheContentAlone(t *testing.T) {
	r := newRepository(t)
	landed := mustGit(t, r, "rev-parse", "HEAD")
	commitFile(t, r, "a", "1")
	tree := mustGit(t, r, "rev-parse", "HEAD^{tree}")
	if err := os.WriteFile(filepath.Join(string(r), "a"), []byte("staged"), 0o666); err != nil {
		t.Fatal(err)
	}
	mustGit(t, r, "add", "a")
	mustMark(t, r, landed)
	if got := mustGit(t, r, "rev-parse", "HEAD^{tree}"); got != tree {
		t.Errorf("got the tree %s, want %s", got, tree)
	}
	if got := mustGit(t, r, "diff", "--cached", "--name-only"); got != "a" {
		t.Errorf("got %q staged, want a", got)
	}
}

func TestRepository_ChangedFilesAreThoseOfTheLanding(t *testing.T) {
	r := newRepository(t)
	landed := commitFile(t, r, "dist/old.go", "1")
	commitFile(t, r, "dist/sub/new.go", "1")
	mustGit(t, r, "mv", "dist/old.go", "dist/moved.go")
	commitFile(t, r, "x_fuzz_test.go", "1")
	for _, c := range []struct{ spec, want string }{
		{"dist/sub", "dist/sub/new.go"},
		{"dist/old.go", "dist/old.go"}, // a file that went away
		{":(glob)**/*fuzz*_test.go", "x_fuzz_test.go"},
		{":(glob)*/new.go", ""},
		{".ci", ""},
	} {
		if got, err := r.changed(landed, []string{c.spec}); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", c.spec, got, err, c.want)
		}
	}
	if files, err := r.files(landed); len(files) != 4 || err != nil {
		t.Errorf("got %v, %v, want four files", files, err)
	}
	landed = commitFile(t, r, "dist/sub/code.go", "package sub // of dist\n")
	commitFile(t, r, "dist/sub/code.go", "package sub\n")
	if files, err := r.files(landed); len(files) > 0 || err != nil {
		t.Errorf("after a change of a comment: got %v, %v, want no file", files, err)
	}
	if _, err := r.changed("0123456789", []string{"dist"}); err == nil {
		t.Error("no error of a commit that does not exist")
	}
}

// TestRepository_EverythingRunsWithoutHistory clones the last commit alone.
func TestRepository_EverythingRunsWithoutHistory(t *testing.T) {
	r := newRepository(t)
	landed := mustGit(t, r, "rev-parse", "HEAD")
	commitFile(t, r, "a", "1")
	mustMark(t, r, landed)
	whole, shallow := repository(t.TempDir()), repository(t.TempDir())
	mustGit(t, whole, "clone", "--quiet", "file://"+string(r), ".")
	mustGit(t, shallow, "clone", "--quiet", "--depth=1", "file://"+string(r), ".")
	if got, want := turnOf(whole), turnOf(r); got != want || got.everything() {
		t.Errorf("a clone: got %+v, want %+v", got, want)
	}
	if now := turnOf(shallow); !now.everything() {
		t.Errorf("a shallow clone: got %+v, want everything", now)
	}
}

func TestRepository_MarksNeedAnAncestor(t *testing.T) {
	r := newRepository(t)
	root := mustGit(t, r, "rev-parse", "HEAD")
	mustGit(t, r, "checkout", "--quiet", "-b", "other")
	other := commitFile(t, r, "a", "1")
	mustGit(t, r, "checkout", "--quiet", "main")
	commitFile(t, r, "b", "1")
	for _, since := range []string{"HEAD", other, "nowhere", "", "--all"} {
		if m, err := r.setMark(since); err == nil {
			t.Errorf("%q: got %+v, want an error", since, m)
		}
	}
	if got := mustMark(t, r, root); got.group != 1 {
		t.Errorf("got %+v", got)
	}
	if trailer := mustGit(t, r, "log", "-1", "--format=%s"); trailer != "write b" {
		t.Errorf("got the subject %q", trailer)
	}
	all, err := r.files(root)
	if !slices.Equal(all, []string{"b"}) || err != nil {
		t.Errorf("got %v, %v", all, err)
	}
}
