package codec

import "fmt"

// Tags are the encodings of one type: [tag, field …]. The tag determines the fields, not their
// number.
//
// The fields of a tag must never change once it is released. A value with another field must get a
// new tag, and readers must accept the old tags as long as programs write them.
type Tags struct {
	Type   string // name in errors
	Fields []int  // number of fields of each tag
}

// Tag writes the header of a value. The caller must then write the fields of that tag. It panics
// if of has no such tag.
func (e *Encoder) Tag(of *Tags, tag int) {
	e.ArrayLen(1 + of.Fields[tag])
	e.Uint(uint64(tag))
}

// Tag reads the header of a value. The caller must then read the fields of the tag. The error
// wraps [ErrTag] if this program does not know the tag, and [ErrFormat] if the number of fields
// is not the one of the tag.
func (d *Decoder) Tag(of *Tags) (tag int, err error) {
	at := d.off
	n, err := d.ArrayLen()
	if err != nil {
		return 0, err
	}
	got, err := d.Uint()
	switch {
	case err != nil:
		return 0, err
	case got >= uint64(len(of.Fields)):
		return 0, fmt.Errorf("%w at byte %d: %w: %s has tag %d, want less than %d",
			ErrFormat, at, ErrTag, of.Type, got, len(of.Fields))
	case n != 1+of.Fields[got]:
		return 0, d.formatError(at, "%s has %d fields with tag %d, want %d", of.Type, n-1, got, of.Fields[got])
	}
	return int(got), nil
}

// OnlyTag is [Decoder.Tag] for a type that has only one tag.
func (d *Decoder) OnlyTag(of *Tags) error {
	_, err := d.Tag(of)
	return err
}
