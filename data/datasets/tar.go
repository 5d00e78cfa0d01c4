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
//	156  kind      '0' or 0: a file; '1', '2': a link; 'L', 'K': the next name, or where the next link
//	               leads, is the content; 'x': more about the next one is
//	157  link      100 bytes, up to a zero: where a link leads
//	257  magic     "ustar"
//	345  prefix    155 bytes, of the name, where a zero is behind the magic
//	512  content, filled up with zeros
const tarBlock = 512

// maxName bounds the content of what only names.
const maxName = 1 << 20

// A tarball is an archive while it is read.
type tarball struct {
	r     io.Reader
	left  int64 // of the content and what fills it up
	begun bool  // a header was read
	done  bool  // the end was seen
}

// A tarEntry is a header, with the records before it that extend it.
type tarEntry struct {
	name, link string
	size       int64 // -1 if an extension does not say it
	kind       byte
}

func (e tarEntry) regular() bool { return e.kind == '0' || e.kind == 0 }

// next returns the next file of any kind; its content is to be read by readAll. It is io.EOF at the
// end, which a block of zeros marks. Some programs leave out these blocks, and what fills up
// the last file, so an archive may also end there. An empty file is no archive.
func (t *tarball) next() (tarEntry, error) {
	more := tarEntry{size: -1}
	for !t.done {
		n, err := io.CopyN(io.Discard, t.r, t.left)
		if err == io.EOF && t.left-n < tarBlock { // the last file is not filled up
			t.done = true
			break
		}
		if err != nil {
			return tarEntry{}, early(err)
		}
		t.left = 0
		var h [tarBlock]byte
		if _, err := io.ReadFull(t.r, h[:]); err != nil {
			if t.done = err == io.EOF && t.begun && more == (tarEntry{size: -1}); t.done {
				break
			}
			return tarEntry{}, early(err)
		}
		if t.done = h == [tarBlock]byte{}; t.done {
			break
		}
		e, err := parseTar(&h)
		if err != nil {
			return tarEntry{}, err
		}
		t.begun = true
		extends := e.kind == 'L' || e.kind == 'K' || e.kind == 'x'
		if !extends {
			e.extend(more)
		}
		if e.kind >= '1' && e.kind <= '6' { // links, devices, directories: they have no content, whatever the size
			e.size = 0
		}
		t.left = (e.size + tarBlock - 1) &^ (tarBlock - 1)
		if !extends {
			return e, nil
		}
		if e.size > maxName {
			return tarEntry{}, fmt.Errorf("%w: a name of %d bytes", ErrTar, e.size)
		}
		content, err := t.content(e.size)
		if err != nil {
			return tarEntry{}, err
		}
		switch e.kind {
		case 'L':
			more.name = text(content)
		case 'K':
			more.link = text(content)
		default:
			err = more.pax(content)
		}
		if err != nil {
			return tarEntry{}, err
		}
	}
	return tarEntry{}, io.EOF
}

// extend replaces the fields that records before the header have.
func (e *tarEntry) extend(more tarEntry) {
	if more.name != "" {
		e.name = more.name
	}
	if more.link != "" {
		e.link = more.link
	}
	if more.size >= 0 {
		e.size = more.size
	}
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
func parseTar(h *[tarBlock]byte) (e tarEntry, err error) {
	sum := int64(0)
	for i, v := range h {
		if i >= 148 && i < 156 {
			v = ' '
		}
		sum += int64(v)
	}
	if want, err := octal(h[148:156]); err != nil || want != sum {
		return e, fmt.Errorf("%w: the checksum of a header", ErrTar)
	}
	if h[124]&0x80 != 0 {
		for _, v := range h[128:136] { // what is before would be beyond any file
			e.size = e.size<<8 | int64(v)
		}
	} else if e.size, err = octal(h[124:136]); err != nil {
		return e, err
	}
	if e.size < 0 || e.size > 1<<60 {
		return e, fmt.Errorf("%w: a file of %d bytes", ErrTar, e.size)
	}
	e.name, e.link, e.kind = text(h[:100]), text(h[157:257]), h[156]
	if prefix := text(h[345:500]); string(h[257:263]) == "ustar\x00" && prefix != "" {
		e.name = prefix + "/" + e.name
	}
	return e, nil
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

// pax reads records "length key=value\n" of the next file's path, link and size.
func (e *tarEntry) pax(b []byte) error {
	for len(b) > 0 {
		digits, _, ok := bytes.Cut(b, []byte(" "))
		n, err := strconv.Atoi(string(digits))
		if !ok || err != nil || n <= len(digits)+1 || n > len(b) || b[n-1] != '\n' {
			return fmt.Errorf("%w: a record of an extended header", ErrTar)
		}
		key, value, _ := strings.Cut(string(b[len(digits)+1:n-1]), "=")
		switch b = b[n:]; key {
		case "path":
			e.name = value
		case "linkpath":
			e.link = value
		case "size":
			if e.size, err = strconv.ParseInt(value, 10, 64); err != nil || e.size < 0 || e.size > 1<<60 {
				return fmt.Errorf("%w: the size %q", ErrTar, value)
			}
		}
	}
	return nil
}
