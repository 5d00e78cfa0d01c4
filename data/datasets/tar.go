package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrTar is wrapped if a shard is not a tar file, or is damaged.
var ErrTar = errors.New("data: not a tar file")

// This package parses tar headers itself, because archive/tar imports os/user, which makes a
// program dynamically linked.
//
//	0    name      100 bytes, zero-terminated
//	124  size      12 bytes, octal; binary if the first bit is set
//	148  checksum  8 bytes, octal: sum of all bytes of the header, with spaces in this field
//	156  kind      '0' or 0: file; '1', '2': link; 'L', 'K': the content is the name, or the
//	               target, of the next entry; 'x': the content extends the next header
//	157  link      100 bytes, zero-terminated: target of a link
//	257  magic     "ustar"
//	345  prefix    155 bytes of the name, if the magic is zero-terminated
//	512  content, padded with zeros
const tarBlock = 512

// maxName limits the content of entries that extend the next header.
const maxName = 1 << 20

// A tarball is an archive that is being read.
type tarball struct {
	r     io.Reader
	left  int64 // unread bytes of the content and its padding
	begun bool  // a header was read
	done  bool  // the end was reached
}

// A tarEntry is a header, combined with the entries before it that extend it.
type tarEntry struct {
	name, link string
	size       int64 // -1 if an extension does not set it
	kind       byte
}

func (e tarEntry) isRegular() bool { return e.kind == '0' || e.kind == 0 }

// nextEntry returns the next entry of any kind. Its content may be read with
// [tarball.readContent] before the next call. nextEntry returns io.EOF at the end, which is
// marked by a block of zeros. Some programs omit this block and the padding of the last file, so
// the archive may also end there. An empty file is not an archive. The error wraps [ErrTar] or
// [data.ErrTruncated] for a damaged archive.
func (t *tarball) nextEntry() (tarEntry, error) {
	more := tarEntry{size: -1}
	for !t.done {
		n, err := io.CopyN(io.Discard, t.r, t.left)
		if err == io.EOF && t.left-n < tarBlock { // the last file has no padding
			t.done = true
			break
		}
		if err != nil {
			return tarEntry{}, truncatedError(err)
		}
		t.left = 0
		var h [tarBlock]byte
		if _, err := io.ReadFull(t.r, h[:]); err != nil {
			if t.done = err == io.EOF && t.begun && more == (tarEntry{size: -1}); t.done {
				break
			}
			return tarEntry{}, truncatedError(err)
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
			e.applyExtension(more)
		}
		if e.kind >= '1' && e.kind <= '6' { // links, devices, directories: no content
			e.size = 0
		}
		t.left = (e.size + tarBlock - 1) &^ (tarBlock - 1)
		if !extends {
			return e, nil
		}
		if e.size > maxName {
			return tarEntry{}, fmt.Errorf("%w: name of %d bytes", ErrTar, e.size)
		}
		content, err := t.readContent(e.size)
		if err != nil {
			return tarEntry{}, err
		}
		switch e.kind {
		case 'L':
			more.name = trimText(content)
		case 'K':
			more.link = trimText(content)
		default:
			err = more.parsePAX(content)
		}
		if err != nil {
			return tarEntry{}, err
		}
	}
	return tarEntry{}, io.EOF
}

// applyExtension sets the fields that extension entries have set.
func (e *tarEntry) applyExtension(more tarEntry) {
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

// readContent reads size bytes of content of the entry that nextEntry returned; size must not
// exceed the entry's. It returns [data.ErrTruncated] if the archive ends before.
func (t *tarball) readContent(size int64) ([]byte, error) {
	b, err := readAll(t.r, size)
	t.left -= int64(len(b))
	if err != nil {
		return nil, truncatedError(err)
	}
	return b, nil
}

// parseTar parses a header. The error wraps [ErrTar] if its checksum or a number is wrong.
func parseTar(h *[tarBlock]byte) (e tarEntry, err error) {
	sum := int64(0)
	for i, v := range h {
		if i >= 148 && i < 156 {
			v = ' '
		}
		sum += int64(v)
	}
	if want, err := parseOctal(h[148:156]); err != nil || want != sum {
		return e, fmt.Errorf("%w: wrong header checksum", ErrTar)
	}
	if h[124]&0x80 != 0 {
		for _, v := range h[128:136] { // the bytes before would exceed any file
			e.size = e.size<<8 | int64(v)
		}
	} else if e.size, err = parseOctal(h[124:136]); err != nil {
		return e, err
	}
	if e.size < 0 || e.size > 1<<60 {
		return e, fmt.Errorf("%w: file of %d bytes", ErrTar, e.size)
	}
	e.name, e.link, e.kind = trimText(h[:100]), trimText(h[157:257]), h[156]
	if prefix := trimText(h[345:500]); string(h[257:263]) == "ustar\x00" && prefix != "" {
		e.name = prefix + "/" + e.name
	}
	return e, nil
}

func trimText(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

func parseOctal(b []byte) (int64, error) {
	s := strings.Trim(trimText(b), " ")
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseInt(s, 8, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: invalid number %q", ErrTar, s)
	}
	return v, nil
}

// parsePAX parses records "length key=value\n" that set the path, link and size of the next
// entry. The error wraps [ErrTar] if they are malformed.
func (e *tarEntry) parsePAX(b []byte) error {
	for len(b) > 0 {
		digits, _, ok := bytes.Cut(b, []byte(" "))
		n, err := strconv.Atoi(string(digits))
		if !ok || err != nil || n <= len(digits)+1 || n > len(b) || b[n-1] != '\n' {
			return fmt.Errorf("%w: invalid record in an extended header", ErrTar)
		}
		key, value, _ := strings.Cut(string(b[len(digits)+1:n-1]), "=")
		switch b = b[n:]; key {
		case "path":
			e.name = value
		case "linkpath":
			e.link = value
		case "size":
			if e.size, err = strconv.ParseInt(value, 10, 64); err != nil || e.size < 0 || e.size > 1<<60 {
				return fmt.Errorf("%w: invalid size %q", ErrTar, value)
			}
		}
	}
	return nil
}
