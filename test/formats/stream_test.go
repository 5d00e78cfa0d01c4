package encoding_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/encoding/msgpack"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

type tensors = map[string]*tensor.Tensor

// A format writes to a path and to a writer, and reads one of stream and at.
type format struct {
	save   func(path string, all tensors) error
	encode func(w io.Writer, all tensors) error
	stream func(r io.Reader, maxBytes int64) (tensors, error)
	at     func(r io.ReaderAt, size, maxBytes int64) (tensors, error)
}

var formats = map[string]format{
	"safetensors": {
		save:   func(path string, all tensors) error { return safetensors.Save(path, all) },
		encode: func(w io.Writer, all tensors) error { return safetensors.Encode(w, all) },
		stream: func(r io.Reader, maxBytes int64) (tensors, error) {
			all, _, err := safetensors.Decode(r, safetensors.Options{MaxBytes: maxBytes})
			return all, err
		},
	},
	"safetensors, a part at a time": {
		save:   func(path string, all tensors) error { return safetensors.Save(path, all) },
		encode: func(w io.Writer, all tensors) error { return safetensors.Encode(w, all) },
		at: func(r io.ReaderAt, size, maxBytes int64) (tensors, error) {
			f, err := safetensors.NewFile(r, size)
			if err != nil {
				return nil, err
			}
			f.MaxBytes = maxBytes
			all, err := f.Tensors()
			return all, errors.Join(err, f.Close())
		},
	},
	"npy": {
		save:   func(path string, all tensors) error { return npy.Save(path, all["x"]) },
		encode: func(w io.Writer, all tensors) error { return npy.Encode(w, all["x"]) },
		stream: func(r io.Reader, maxBytes int64) (tensors, error) {
			x, err := npy.Decode(r, npy.Options{MaxBytes: maxBytes})
			return tensors{"x": x}, err
		},
	},
	"npz": {
		save:   npy.Save[tensors],
		encode: npy.Encode[tensors],
		at: func(r io.ReaderAt, size, maxBytes int64) (tensors, error) {
			a, err := npy.NewArchive(r, size)
			if err != nil {
				return nil, err
			}
			a.MaxBytes = maxBytes
			all, err := a.Tensors()
			return all, errors.Join(err, a.Close())
		},
	},
	"pt": {
		save:   func(path string, all tensors) error { return pt.Save(path, all) },
		encode: func(w io.Writer, all tensors) error { return pt.Encode(w, all) },
		at: func(r io.ReaderAt, size, maxBytes int64) (tensors, error) {
			v, err := pt.Decode(r, size, pt.Options{MaxBytes: maxBytes})
			if err != nil {
				return nil, err
			}
			all, _, err := pt.StateDict(v)
			return all, err
		},
	},
	"hdf5": {
		save:   func(path string, all tensors) error { return hdf5.Save(path, all) },
		encode: func(w io.Writer, all tensors) error { return hdf5.Encode(w, all) },
		at:     hdf5At,
	},
	"hdf5, compressed": {
		save:   func(path string, all tensors) error { return hdf5.SaveWith(path, all, compressed) },
		encode: func(w io.Writer, all tensors) error { return hdf5.EncodeWith(w, all, compressed) },
		at:     hdf5At,
	},
	"msgpack": {
		save:   msgpack.Save,
		encode: func(w io.Writer, all tensors) error { return msgpack.Encode(w, all) },
		stream: func(r io.Reader, maxBytes int64) (tensors, error) {
			v, err := msgpack.Decode(r, msgpack.Options{MaxBytes: maxBytes})
			all := tensors{}
			values, _ := v.(map[string]any)
			for name, t := range values {
				all[name] = t.(*tensor.Tensor)
			}
			return all, err
		},
	},
}

var compressed = hdf5.Options{Chunk: []int{100}, Gzip: 1, Shuffle: true}

func hdf5At(r io.ReaderAt, size, maxBytes int64) (tensors, error) {
	f, err := hdf5.NewFile(r, size)
	if err != nil {
		return nil, err
	}
	f.MaxBytes = maxBytes
	all, err := f.Tensors()
	return all, errors.Join(err, f.Close())
}

// decode reads all of b.
func (f format) decode(b []byte, maxBytes int64) (tensors, error) {
	if f.stream != nil {
		return f.stream(bytes.NewReader(b), maxBytes)
	}
	return f.at(bytes.NewReader(b), int64(len(b)), maxBytes)
}

// content is what the formats are to keep: one tensor, which all of them have room for.
func content() tensors { return tensors{"x": tensor.Arange(tensor.Float32, 0, 1000, 1)} }

func (f format) bytes(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.encode(&b, content()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func each(t *testing.T, do func(t *testing.T, f format)) {
	for name, f := range formats {
		t.Run(name, func(t *testing.T) { do(t, f) })
	}
}

func TestEncode_WritesWhatSaveWrites(t *testing.T) {
	each(t, func(t *testing.T, f format) {
		path := filepath.Join(t.TempDir(), "archive.pt")
		if err := f.save(path, content()); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.bytes(t); !bytes.Equal(got, want) {
			t.Errorf("%d bytes to a writer, and others, %d, to a path", len(got), len(want))
		}
	})
}

func TestDecode_ReadsWhatEncodeWrites(t *testing.T) {
	each(t, func(t *testing.T, f format) {
		got, err := f.decode(f.bytes(t), 0)
		if err != nil || len(got) != 1 || !tensor.Equal(got["x"], content()["x"]) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

var errDisk = errors.New("the disk is gone")

// A short writer fails when it has taken so many bytes.
type shortWriter struct{ left int }

func (w *shortWriter) Write(b []byte) (int, error) {
	if len(b) > w.left {
		return w.left, errDisk
	}
	w.left -= len(b)
	return len(b), nil
}

func TestEncode_ReturnsTheErrorOfItsWriter(t *testing.T) {
	each(t, func(t *testing.T, f format) {
		for whole, n := len(f.bytes(t)), 0; n < whole; n += 1 + whole/40 {
			if err := f.encode(&shortWriter{n}, content()); !errors.Is(err, errDisk) {
				t.Errorf("after %d of %d bytes: %v", n, whole, err)
			}
		}
	})
}

func TestDecode_RefusesWhatIsCutShort(t *testing.T) {
	each(t, func(t *testing.T, f format) {
		whole := f.bytes(t)
		for n := range whole {
			got, err := f.decode(whole[:n], 0)
			if err == nil {
				t.Fatalf("%d of %d bytes make %v", n, len(whole), got)
			}
			if f.stream != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
			}
		}
	})
}

// A broken disk has all bytes but one.
type brokenDisk struct {
	*bytes.Reader
	bad int64
}

func (d brokenDisk) ReadAt(b []byte, at int64) (int, error) {
	if at <= d.bad && d.bad < at+int64(len(b)) {
		return 0, errDisk
	}
	return d.Reader.ReadAt(b, at)
}

func TestDecode_ReturnsTheErrorOfItsReader(t *testing.T) {
	each(t, func(t *testing.T, f format) {
		whole := f.bytes(t)
		size, failed := int64(len(whole)), int64(0)
		for bad := range size {
			disk := brokenDisk{bytes.NewReader(whole), bad}
			var got tensors
			var err error
			if f.stream != nil {
				got, err = f.stream(io.NewSectionReader(disk, 0, size), 0)
			} else {
				got, err = f.at(disk, size, 0)
			}
			switch {
			case errors.Is(err, errDisk):
				failed++
			case err != nil || !tensor.Equal(got["x"], content()["x"]): // and otherwise the byte is padding
				t.Errorf("without byte %d of %d: %v", bad, size, err)
			}
		}
		if failed < size/4 || f.stream != nil && failed < size {
			t.Errorf("without one byte of %d it was read %d times", size, size-failed)
		}
	})
}

func TestDecode_HasALimit(t *testing.T) {
	each(t, func(t *testing.T, f format) {
		whole := f.bytes(t)
		if _, err := f.decode(whole, 3999); !errors.Is(err, safefile.ErrLimit) {
			t.Errorf("%v", err)
		}
		if _, err := f.decode(whole, 5000); err != nil {
			t.Errorf("above the limit's need: %v", err)
		}
	})
}

func TestDecode_LeavesWhatFollows(t *testing.T) {
	each(t, func(t *testing.T, f format) {
		if f.stream == nil {
			t.Skip("its directory is not at its beginning")
		}
		r := bufio.NewReader(bytes.NewReader(bytes.Repeat(f.bytes(t), 3)))
		for i := range 3 {
			if got, err := f.stream(r, 0); err != nil || !tensor.Equal(got["x"], content()["x"]) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if b, err := r.ReadByte(); err != io.EOF {
			t.Errorf("left: %d, %v", b, err)
		}
	})
}

// A header of a few bytes claims terabytes, and what would hold them is never asked for.
func TestDecode_RefusesATerabyte(t *testing.T) {
	head := []byte(`{"x":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}}`)
	stream := append([]byte{byte(len(head)), 0, 0, 0, 0, 0, 0, 0}, head...)
	var file *encoding.FileError
	_, _, err := safetensors.Decode(bytes.NewReader(stream), safetensors.Options{MaxBytes: 1 << 30})
	if !errors.Is(err, safefile.ErrLimit) || !errors.As(err, &file) {
		t.Errorf("safetensors: %v", err)
	}
	text := "{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,), }"
	stream = append(append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), 0), text...)
	_, err = npy.Decode(bytes.NewReader(stream), npy.Options{MaxBytes: 1 << 30})
	if !errors.Is(err, safefile.ErrLimit) || !errors.As(err, &file) {
		t.Errorf("npy: %v", err)
	}
}

func ExampleFileError() {
	_, err := npy.Decode(bytes.NewReader([]byte("no array")), npy.Options{})
	if file, ok := errors.AsType[*encoding.FileError](err); ok {
		os.Stdout.WriteString(file.Error())
	}
	// Output: read: npy: malformed file: file does not start with "\x93NUMPY"
}
