package files

import (
	"fmt"
	"io"
)

// Convert writes the tensors of the file from to the file to, whose names say their formats, and a line to out. What is not a tensor
// is left behind. The error wraps ErrFormat, ErrOne, or is what reading or writing says, a dtype that the format lacks among that;
// then nothing was written.
func Convert(out io.Writer, from, to string) error {
	source, err := Of(from)
	if err != nil {
		return err
	}
	target, err := Of(to)
	if err != nil {
		return err
	}
	tensors, err := source.Load(from)
	if err != nil {
		return err
	}
	if err := target.Save(to, tensors); err != nil {
		return err
	}
	size := 0
	for _, t := range tensors {
		size += t.Nbytes()
	}
	_, err = fmt.Fprintf(out, "%s: %d tensors, %s\n", to, len(tensors), bytes(size))
	return err
}

// bytes prints a size for people.
func bytes(n int) string {
	const unit = 1024
	v, names := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for v >= unit && len(names) > 1 {
		v, names = v/unit, names[1:]
	}
	if names[0] == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, names[0])
}
