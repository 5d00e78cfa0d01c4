package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Trailers of a commit's message.
const (
	sinceTrailer = "CI-Since"
	groupTrailer = "CI-Group"
)

const tablePath = ".ci/steps"

// A repository is the [history] in a directory with a clone. Its value is the path of the
// directory.
type repository string

func (r repository) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = string(r)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}

func (r repository) mark(commit string) (mark, bool) {
	read := func(key string) string {
		out, err := r.git("log", "-1", "--format=%(trailers:key="+key+",valueonly)", commit, "--")
		if err != nil {
			return ""
		}
		return out
	}
	m := mark{since: read(sinceTrailer)}
	m.group, _ = strconv.Atoi(read(groupTrailer))
	return m, m.since != "" && !strings.HasPrefix(m.since, "-") && m.group >= 1 && m.group <= groups
}

func (r repository) contains(commit string) bool {
	head, err := r.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return false
	}
	sha, err := r.git("rev-parse", "--verify", "--quiet", commit+"^{commit}")
	if err != nil || sha == head {
		return false
	}
	_, err = r.git("merge-base", "--is-ancestor", sha, head)
	return err == nil
}

// files returns the files that match a pathspec, or all files without pathspecs, and differ
// between a commit and HEAD, sorted. A Go file that differs in its comments only is not among
// them, because it compiles to the same program.
func (r repository) files(since string, pathspecs ...string) ([]string, error) {
	args := append([]string{"diff", "--name-status", "--no-renames", "-z", since, "HEAD", "--"}, pathspecs...)
	out, err := r.git(args...)
	if err != nil || out == "" {
		return nil, err
	}
	var files, rewritten []string
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		status, name := fields[i], fields[i+1]
		if status == "M" && strings.HasSuffix(name, ".go") {
			rewritten = append(rewritten, name)
		} else {
			files = append(files, name)
		}
	}
	for _, name := range rewritten {
		same, err := r.sameCode(since, name)
		if err != nil {
			return nil, err
		}
		if !same {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files, nil
}

// sameCode reports whether the Go file name has the same code in the commit since and in HEAD.
// The file must be in both.
func (r repository) sameCode(since, name string) (bool, error) {
	before, err := r.git("show", since+":"+name)
	if err != nil {
		return false, err
	}
	now, err := r.git("show", "HEAD:"+name)
	return err == nil && sameCode(name, before, now), err
}

func (r repository) changed(since string, pathspecs []string) (string, error) {
	files, err := r.files(since, pathspecs...)
	if err != nil || len(files) == 0 {
		return "", err
	}
	return files[0], nil
}

func (r repository) table(commit string) string {
	out, err := r.git("show", commit+":"+tablePath)
	if err != nil {
		return ""
	}
	return out
}

// setMark amends HEAD: it writes the mark of a landing after the commit since to its message,
// and returns the mark. HEAD must descend from that commit.
func (r repository) setMark(since string) (mark, error) {
	sha, err := r.git("rev-parse", "--verify", "--quiet", since+"^{commit}")
	if err != nil {
		return mark{}, fmt.Errorf("%q: want the last commit of the previous landing", since)
	}
	if !r.contains(sha) {
		return mark{}, fmt.Errorf("%s: want a commit that HEAD descends from", since)
	}
	before, _ := r.mark(sha)
	m := mark{since: sha, group: next(before.group)}
	// With --only and no path the commit's content stays as it is, whatever is staged.
	_, err = r.git("-c", "trailer.ifexists=replace", "commit", "--amend", "--only", "--no-edit", "--quiet",
		"--trailer", sinceTrailer+": "+m.since, "--trailer", groupTrailer+": "+strconv.Itoa(m.group))
	return m, err
}
