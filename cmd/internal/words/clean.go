package words

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clean writes what would move a terminal's cursor, or begin a line, as Go writes it in a string:
// "\n", "\x1b". Other programs chose the names of their processes, queues and tensors.
func Clean(text string) string {
	if strings.IndexFunc(text, unclean) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if unclean(r) || r == utf8.RuneError && n == 1 {
			quoted := strconv.Quote(text[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

func unclean(r rune) bool { return !strconv.IsPrint(r) }

// Fprintf is fmt.Fprintf with clean texts: the format alone begins lines and moves the cursor.
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

// CleanError returns err with a clean text. Its lines stay, since joined errors have one each, but
// those after the first are indented: none passes for a line of its own. It returns nil for nil.
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

// A cleanError says in another way what an error says.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.err }
