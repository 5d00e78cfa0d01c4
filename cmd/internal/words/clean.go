package words

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clean escapes characters that are not printable, such as newlines and escape sequences, as in a
// Go string literal. It must be applied to names of processes, queues and tensors, because other
// programs choose them.
func Clean(text string) string {
	if strings.IndexFunc(text, isUnprintable) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if isUnprintable(r) || r == utf8.RuneError && n == 1 {
			quoted := strconv.Quote(text[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

func isUnprintable(r rune) bool { return !strconv.IsPrint(r) }

// Fprintf is like [fmt.Fprintf], but cleans strings, errors and Stringers with [Clean]. Only the
// format can contain newlines and escape sequences.
func Fprintf(out io.Writer, format string, values ...any) (int, error) {
	clean := make([]any, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case string:
			clean[i] = Clean(v)
		case error:
			clean[i] = Clean(v.Error())
		case fmt.Stringer:
			clean[i] = Clean(v.String())
		default:
			clean[i] = v
		}
	}
	return fmt.Fprintf(out, format, clean...)
}

// CleanError returns err with a cleaned message, or nil if err is nil. Newlines are kept, because
// [errors.Join] uses them, but the lines after the first are indented so that they cannot be
// mistaken for other output. The result wraps err.
func CleanError(err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.ReplaceAll(err.Error(), "\t", tab), "\n")
	for i, l := range lines {
		lines[i] = Clean(l)
	}
	text := strings.Join(lines, "\n"+tab)
	if text == err.Error() {
		return err
	}
	return &cleanError{text, err}
}

const tab = "    "

// A cleanError replaces the message of an error.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.err }
