package png_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/shoal-mp/shoal/data/image/internal/pixel/pixeltest"
	"github.com/shoal-mp/shoal/data/image/internal/png"
	"github.com/shoal-mp/shoal/encoding"
)

func files(t testing.TB) []string { return pixeltest.Files(t, "*.png", 20) }

func TestPixelsAreThoseOfPillow(t *testing.T) {
	pixeltest.OnEachLevel(t, func(t *testing.T) { pixeltest.ComparePillow(t, new(png.Decoder), files(t)) })
}

func TestATruncatedFileIsAnError(t *testing.T) {
	for _, name := range files(t) {
		data := pixeltest.Read(t, name)
		var d png.Decoder
		for n := range len(data) {
			var p pixeltest.Picture
			err := d.Decode(data[:n], 3, p.Place)
			var at *encoding.FileError
			if !errors.As(err, &at) || at.Offset > int64(n) {
				t.Fatalf("%s: %d bytes of %d: %v", name, n, len(data), err)
			}
		}
	}
}

func TestADamagedFileIsAnError(t *testing.T) {
	for _, name := range files(t) {
		data := pixeltest.Read(t, name)
		var d png.Decoder
		for i := range data {
			data[i] ^= 0x10
			var p pixeltest.Picture
			if err := d.Decode(data, 3, p.Place); err == nil {
				t.Fatalf("%s: byte %d of %d changed: no error", name, i, len(data))
			}
			data[i] ^= 0x10
		}
	}
}

// resum corrects the checksums of the chunks of a file.
func resum(data []byte) []byte {
	data = bytes.Clone(data)
	for at := 8; at+12 <= len(data); {
		n := int(binary.BigEndian.Uint32(data[at:]))
		if n > len(data)-at-12 {
			break
		}
		binary.BigEndian.PutUint32(data[at+8+n:], crc32.ChecksumIEEE(data[at+4:at+8+n]))
		at += 12 + n
	}
	return data
}

func FuzzDecode(f *testing.F) {
	for _, name := range files(f) {
		f.Add(pixeltest.Read(f, name), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, color bool) {
		channels := 1
		if color {
			channels = 3
		}
		var d png.Decoder
		var p pixeltest.Picture
		var at *encoding.FileError
		data = resum(data) // or nothing would get past them
		if err := d.Decode(data, channels, p.Place); err != nil &&
			(!errors.As(err, &at) || at.Offset < 0 || at.Offset > int64(len(data))) {
			t.Errorf("%v is no FileError within %d bytes", err, len(data))
		}
	})
}
