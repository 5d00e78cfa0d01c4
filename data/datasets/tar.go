package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrTar is wrapped where a shard is not a tar file, or is damaged.
var ErrTar = errors.New("data: not a tar file")

// The names of files in a tar archive are read here, because archive/tar knows users too and so
// makes a program dynamic.
//
//	0    name      100 bytes, up to a zero
//	124  size      12 bytes, octal; or binary, if the first bit is set
//	148  checksum  8 bytes, octal: the sum of all bytes of the header, with spaces here
//	156  kind      '0' or 0: a file; 'L': the next name is the content; 'x': more about the next one is
//	257  magic     "ustar"
//	345  prefix    155 bytes, of the name, where a zero is behind the magic
//	512  content, filled up with zeros
const tarBlock = 512

// maxName bounds the content of what only names.
const maxName = 1 << 20

// A tarball is an archive while it is read.
type tarball struct {
	r    io.Reader
	left int64 // of the content and what fills it up
	done bool  // the end was seen
}

// next returns the next file of any kind; its content is to be read by readAll. It is io.EOF at the
// end, which a block of zeros marks: an archive that ends without one was cut short between two
// files, or is empty.
func (t *tarball) next() (name string, size int64, regular bool, err error) {
	long, wide := "", int64(-1)
	for !t.done {
		if _, err := io.CopyN(io.Discard, t.r, t.left); err != nil {
			return "", 0, false, early(err)
		}
		t.left = 0
		var h [tarBlock]byte
		if _, err := io.ReadFull(t.r, h[:]); err != nil {
			return "", 0, false, early(err)
		}
		if t.done = h == [tarBlock]byte{}; t.done {
			break
		}
		name, size, err := parseTar(&h)
		if err != nil {
			return "", 0, false, err
		}
		kind := h[156]
		if kind != 'L' && kind != 'x' {
			if long != "" {
				name = long
			}
			if wide >= 0 {
				size = wide
			}
			t.left = (size + tarBlock - 1) &^ (tarBlock - 1)
			return name, size, kind == '0' || kind == 0, nil
		}
		t.left = (size + tarBlock - 1) &^ (tarBlock - 1)
		if size > maxName {
			return "", 0, false, fmt.Errorf("%w: a name of %d bytes", ErrTar, size)
		}
		content, err := t.content(size)
		if err != nil {
			return "", 0, false, err
		}
		if kind == 'L' {
			long = text(content)
		} else if long, wide, err = pax(content, long, wide); err != nil {
			return "", 0, false, err
		}
	}
	return "", 0, false, io.EOF
}

// content reads the content of the file that next returned.
func (t *tarball) content(size int64) ([]byte, error) {
	b, err := readAll(t.r, size)
	t.left -= int64(len(b))
	if err != nil {
		return nil, early(err)
	}
	return b, nil
}

// parseTar reads a header.
func parseTar(h *[tarBlock]byte) (name string, size int64, err error) {
	sum := int64(0)
	for i, v := range h {
		if i >= 148 && i < 156 {
			v = ' '
		}
		sum += int64(v)
	}
	if want, err := octal(h[148:156]); err != nil || want != sum {
		return "", 0, fmt.Errorf("%w: the checksum of a header", ErrTar)
	}
	if h[124]&0x80 != 0 {
		for _, v := range h[128:136] { // what is before would be beyond any file
			size = size<<8 | int64(v)
		}
	} else if size, err = octal(h[124:136]); err != nil {
		return "", 0, err
	}
	if size < 0 || size > 1<<60 {
		return "", 0, fmt.Errorf("%w: a file of %d bytes", ErrTar, size)
	}
	name = text(h[:100])
	if prefix := text(h[345:500]); string(h[257:263]) == "ustar\x00" && prefix != "" {
		name = prefix + "/" + name
	}
	return name, size, nil
}

func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

func octal(b []byte) (int64, error) {
	s := strings.Trim(text(b), " ")
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseInt(s, 8, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: the number %q", ErrTar, s)
	}
	return v, nil
}

// pax reads records "length key=value\n" of the next file's path and size.
func pax(b []byte, path string, size int64) (string, int64, error) {
	for len(b) > 0 {
		digits, _, ok := bytes.Cut(b, []byte(" "))
		n, err := strconv.Atoi(string(digits))
		if !ok || err != nil || n <= len(digits)+1 || n > len(b) || b[n-1] != '\n' {
			return "", 0, fmt.Errorf("%w: a record of an extended header", ErrTar)
		}
		key, value, _ := strings.Cut(string(b[len(digits)+1:n-1]), "=")
		switch b = b[n:]; key {
		case "path":
			path = value
		case "size":
			if size, err = strconv.ParseInt(value, 10, 64); err != nil || size < 0 || size > 1<<60 {
				return "", 0, fmt.Errorf("%w: the size %q", ErrTar, value)
			}
		}
	}
	return path, size, nil
}
