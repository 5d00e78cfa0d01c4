package datasets

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isDir follows links.
func isDir(root string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	st, err := os.Stat(filepath.Join(root, e.Name()))
	return err == nil && st.IsDir()
}

// images returns the images in a folder: those of each directory, sorted, in the order of the
// directories' paths.
func images(root, dir string) (files []string, err error) {
	dirs := []string{dir}
	for i := 0; i < len(dirs); i++ {
		entries, err := os.ReadDir(filepath.Join(root, dirs[i]))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() {
				dirs = append(dirs, filepath.Join(dirs[i], e.Name()))
			}
		}
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			switch strings.ToLower(filepath.Ext(e.Name())) {
			case ".png", ".jpg", ".jpeg":
				if !e.IsDir() {
					files = append(files, filepath.Join(dir, e.Name()))
				}
			}
		}
	}
	return files, nil
}
