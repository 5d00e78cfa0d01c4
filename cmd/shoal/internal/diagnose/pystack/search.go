package pystack

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
)

// ReadMemory reads n bytes at an address of a process.
func ReadMemory(s procfs.System, pid int, addr uint64, n int) ([]byte, error) {
	f, err := open(s, pid)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return memory{r: f}.read(addr, n)
}

// overlap is the part of a block that the next one repeats. A match must not be longer.
const overlap = pageSize

// FindText searches the private memory of a process for a pattern, and returns the matches with
// their submatches. A match may be returned twice, and a match longer than a page may be missed.
// It stops after limit bytes or at most 1 MiB later, and skips most pages that are not resident.
// The caller must have read Maps.
func FindText(s procfs.System, p *procfs.Process, pattern *regexp.Regexp, limit int) ([][]string, error) {
	f, err := open(s, p.PID)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pages, err := os.Open(filepath.Join(s.Proc, strconv.Itoa(p.PID), "pagemap"))
	if err != nil {
		return nil, err
	}
	defer pages.Close()
	var found [][]string
	scanPrivate(f, pages, p, limit, func(data []byte) bool {
		for _, match := range pattern.FindAllSubmatch(data, -1) {
			texts := make([]string, len(match))
			for i, part := range match {
				texts[i] = string(part)
			}
			found = append(found, texts)
		}
		return true
	})
	return found, nil
}

// scanPrivate passes the resident private memory of a process to next, in blocks that overlap,
// until next returns false or limit bytes have been read. next must not keep data. f is the mem
// file of the process, and pages its pagemap.
func scanPrivate(f, pages io.ReaderAt, p *procfs.Process, limit int, next func(data []byte) bool) {
	buffer := make([]byte, scanPages*pageSize)
	for _, m := range arenasFirst(p.Maps.Private) {
		for at := m.Start; at < m.End && limit > 0; at += scanPages*pageSize - overlap {
			n := min(scanPages, (m.End-at)/pageSize)
			got := readResident(f, pages, at, n, buffer)
			limit -= len(got)
			if len(got) > 0 && !next(got) {
				return
			}
		}
	}
}

// HasInt reports whether the interpreter of a process has an int object with a value, such as the
// number of a child. It stops after limit bytes or at most 1 MiB later. The caller must have
// read Maps.
//
// https://github.com/python/cpython/blob/v3.11.7/Include/cpython/longintrepr.h#L85-L88
// https://github.com/python/cpython/blob/v3.12.1/Include/cpython/longintrepr.h#L93-L104
func HasInt(s procfs.System, p *procfs.Process, value, limit int) (bool, error) {
	f, err := open(s, p.PID)
	if err != nil {
		return false, err
	}
	defer f.Close()
	pages, err := os.Open(filepath.Join(s.Proc, strconv.Itoa(p.PID), "pagemap"))
	if err != nil {
		return false, err
	}
	defer pages.Close()
	found := false
	digit := binary.LittleEndian.AppendUint32(nil, uint32(value))
	scanPrivate(f, pages, p, limit, func(data []byte) bool {
		found = slices.ContainsFunc(findAll(data, digit), func(at int) bool { return isInt(p, data, at) })
		return !found
	})
	return found, nil
}

// findAll returns the positions of a pattern that are multiples of 8.
func findAll(data, pattern []byte) (all []int) {
	for from := 0; ; {
		at := bytes.Index(data[from:], pattern)
		if at < 0 {
			return all
		}
		if at += from; at%8 == 0 {
			all = append(all, at)
		}
		from = at + 1
	}
}

// isInt reports whether the bytes before the position digit of data are the head of an int
// object with one digit: a reference count, the type, and the size, which since 3.12 is a tag.
func isInt(p *procfs.Process, data []byte, digit int) bool {
	if digit < 24 {
		return false
	}
	size, class := binary.LittleEndian.Uint64(data[digit-8:]), binary.LittleEndian.Uint64(data[digit-16:])
	return (size == 1 || size == 1<<3) && slices.ContainsFunc(p.Maps.Python, func(m procfs.Mapping) bool {
		return m.Contains(class)
	})
}

// readResident reads from the first to the last resident page among n pages at an address. It
// does not return the address of the first one. The result is the beginning of buffer, which
// must have room for n pages. It is empty if no page is resident, and ends before the first page
// that cannot be read. f is the mem file of the process, and pages its pagemap.
func readResident(f, pages io.ReaderAt, at, n uint64, buffer []byte) []byte {
	if n == 0 {
		return nil
	}
	first, last := residentRange(pages, at, n)
	if last <= first {
		return nil
	}
	got, _ := f.ReadAt(buffer[:(last-first)*pageSize], int64(at+first*pageSize))
	return buffer[:got]
}
