package wire

import "fmt"

// Tags are the forms in which values of one type are written: [tag, field …]. The tag says which
// fields follow, so the number of fields decides nothing.
//
// The fields of a tag never change once it is released. A value with one more field has a new tag,
// and readers know the old tags as long as programs write them.
type Tags struct {
	Type   string // as errors name it
	Fields []int  // how many fields follow each tag
}

// Tag begins a value. The caller writes the fields of that tag after it.
func (e *Encoder) Tag(of *Tags, tag int) {
	e.ArrayLen(1 + of.Fields[tag])
	e.Uint(uint64(tag))
}

// Tag reads the beginning of a value. The fields of its tag follow. The error wraps ErrTag if this
// program does not know the tag.
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
		return 0, fmt.Errorf("%w at byte %d: %w: a %s with tag %d, and this program knows those below %d",
			ErrFormat, at, ErrTag, of.Type, got, len(of.Fields))
	case n != 1+of.Fields[got]:
		return 0, d.fail(at, "a %s of %d fields with tag %d, which has %d", of.Type, n-1, got, of.Fields[got])
	}
	return int(got), nil
}

// OnlyTag reads the beginning of a value of a type that has one tag.
func (d *Decoder) OnlyTag(of *Tags) error {
	_, err := d.Tag(of)
	return err
}
