package datasets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isDir reports whether e, an entry of the directory root, is a directory or a symbolic link to
// one. It is false for a link that cannot be followed.
func isDir(root string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	st, err := os.Stat(filepath.Join(root, e.Name()))
	return err == nil && st.IsDir()
}

// listImages returns the images at any depth below dir, a folder of root, as paths relative to
// root, sorted by the path of the directory and then by name.
func listImages(root, dir string) (files []string, err error) {
	w := walk{root: root, files: map[string][]string{}}
	if err := w.visit(dir, nil); err != nil {
		return nil, err
	}
	slices.Sort(w.dirs)
	for _, dir := range w.dirs {
		files = append(files, w.files[dir]...)
	}
	return files, nil
}

// A walk visits a directory tree and follows symbolic links.
type walk struct {
	root  string
	dirs  []string
	files map[string][]string // images by directory
}

// maxDepth is the maximum depth of directories.
const maxDepth = 200

var errDepth = errors.New("directories are nested too deeply")

// visit adds the images in dir, a path below w.root, and in its folders to w. above holds the
// directories that contain it. The error is one of reading a directory, or wraps errDepth below
// maxDepth directories.
func (w *walk) visit(dir string, above []fs.FileInfo) error {
	path := filepath.Join(w.root, dir)
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, st) }) {
		return nil // a link to a parent directory
	}
	if len(above) >= maxDepth {
		return &fs.PathError{Op: "walk", Path: path, Err: errDepth}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	w.dirs = append(w.dirs, dir)
	above = append(slices.Clip(above), st)
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if isDir(path, e) {
			if err := w.visit(name, above); err != nil {
				return err
			}
		} else if slices.Contains(imageKinds, strings.TrimPrefix(strings.ToLower(filepath.Ext(name)), ".")) {
			w.files[dir] = append(w.files[dir], name)
		}
	}
	return nil
}
