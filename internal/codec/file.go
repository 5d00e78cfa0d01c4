package codec

import (
	"fmt"
	"os"
	"reflect"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A fileCodec is the codec of *os.File. It encodes an open file: its name, and a block that
// stands for a descriptor kept by the domain. The receiver gets a descriptor of its own, which
// it must close.
type fileCodec struct{}

// fileTags are the tags of [name, block].
var fileTags = &Tags{"file", []int{2}}

func (fileCodec) encode(e *Encoder, v reflect.Value) error {
	f := v.Interface().(*os.File)
	d, err := arena.Default()
	if err != nil {
		return err
	}
	h, err := d.KeepFile(f)
	if err != nil {
		return fmt.Errorf("send file %s: %w", f.Name(), err)
	}
	e.OnDone(WatcherFunc(func(bool) { d.LetGo(h) })) // the message holds it now
	e.Tag(fileTags, 0)
	e.String(f.Name())
	e.Block(h)
	return nil
}

func (fileCodec) decode(d *Decoder, v reflect.Value) error {
	if err := d.OnlyTag(fileTags); err != nil {
		return err
	}
	name, err := d.String()
	if err != nil {
		return err
	}
	h, err := d.Block()
	if err != nil {
		return err
	}
	domain, err := arena.Default()
	if err != nil {
		return err
	}
	f, err := domain.TakeFile(h, name)
	if err != nil {
		return fmt.Errorf("receive file %s: %w", name, err)
	}
	d.OnDone(WatcherFunc(func(kept bool) {
		if !kept {
			f.Close()
		}
	}))
	v.Set(reflect.ValueOf(f))
	return nil
}

// A filer is a connection or a listener of package net with a file that can be sent.
type filer interface{ File() (*os.File, error) }

// netAdvice returns advice for an error, and true, if t is a connection, a listener or an
// interface of package net, which cannot be sent. Otherwise it returns false.
func netAdvice(t reflect.Type) (advice string, ok bool) {
	if t.PkgPath() != "net" || t.Kind() != reflect.Interface &&
		!reflect.PointerTo(t).Implements(reflect.TypeFor[filer]()) {
		return "", false
	}
	return "send the *os.File returned by its method File, and restore it in the receiver with net.FileConn, " +
		"net.FileListener or net.FilePacketConn", true
}
