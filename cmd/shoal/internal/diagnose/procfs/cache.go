package procfs

import (
	"io"
	"os"
)

// A Cache keeps files of /proc open between two readings, which costs a third of opening them
// again. The caller must call Sweep regularly. It must not be used by several goroutines.
type Cache struct {
	files  map[string]*os.File
	used   map[string]bool
	buffer [4096]byte
}

// maxCached limits the descriptors of a cache.
const maxCached = 512

// NewCache returns an empty cache for the field Cache of a [System]. The caller must call
// [Cache.Sweep] regularly, because the cache keeps files open.
func NewCache() *Cache {
	return &Cache{files: make(map[string]*os.File), used: make(map[string]bool)}
}

// Sweep closes the files that were not read since the last call.
func (c *Cache) Sweep() {
	for path, f := range c.files {
		if !c.used[path] {
			f.Close()
			delete(c.files, path)
		}
	}
	clear(c.used)
}

// read returns the text of a file, which is valid only until the next call. If the file's process
// has ended, read opens the path again. Then it returns an error, or the text of another process
// that has its number now.
func (c *Cache) read(path string) ([]byte, error) {
	f := c.files[path]
	if f == nil {
		if len(c.files) >= maxCached {
			return os.ReadFile(path)
		}
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		c.files[path] = f
	}
	n, err := f.ReadAt(c.buffer[:], 0)
	if err != nil && err != io.EOF || n == len(c.buffer) {
		f.Close()
		delete(c.files, path)
		return os.ReadFile(path)
	}
	c.used[path] = true
	return c.buffer[:n], nil
}

// read returns the text of a file, which is valid until the next call.
func (s System) read(path string) ([]byte, error) {
	if s.Cache != nil {
		return s.Cache.read(path)
	}
	return os.ReadFile(path)
}
