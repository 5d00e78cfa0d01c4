package encoding_test

import (
	"errors"
	"io"
	"testing"

	"github.com/shoal-mp/shoal/encoding"
)

func TestFileError_SaysWhatItKnows(t *testing.T) {
	for _, c := range []struct {
		err  encoding.FileError
		want string
	}{
		{encoding.FileError{Err: io.ErrUnexpectedEOF}, "read: unexpected EOF"},
		{encoding.FileError{Path: "x.npy", Err: io.ErrUnexpectedEOF}, "read x.npy: unexpected EOF"},
		{encoding.FileError{Path: "x.npz", Name: "a", Offset: 7, Err: io.ErrUnexpectedEOF},
			`read x.npz: "a": byte 7: unexpected EOF`},
	} {
		if got := c.err.Error(); got != c.want || !errors.Is(&c.err, io.ErrUnexpectedEOF) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
