package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decode decodes a line, which must contain exactly one JSON value. The result consists of nil,
// bool, int64, float64, string, map[string]any and []any. A list of numbers may also be []int64
// or []float64. The result does not refer to line. The error wraps [ErrValue].
func decode(line []byte) (any, error) {
	if !utf8.Valid(line) {
		return nil, fmt.Errorf("%w: not UTF-8", ErrValue)
	}
	if v, ok := scan(line); ok {
		return v, nil
	}
	return decodeStrictly(line)
}

// decodeStrictly decodes a line by encoding/json. The error wraps [ErrValue].
func decodeStrictly(line []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if at, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("%w: byte %d: %w", ErrValue, at.Offset, err)
		}
		return nil, fmt.Errorf("%w: %w", ErrValue, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: data after the first value, at byte %d", ErrValue, d.InputOffset())
	}
	return convertNumbers(v)
}

// convertNumbers converts each [json.Number] in v, the lists and maps of v included, which it
// changes in place: integers to int64 and other numbers to float64, as Python does. The error
// wraps [ErrValue] if a number does not fit.
func convertNumbers(v any) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		return parseNumber(string(v))
	case []any:
		for i := range v {
			if v[i], err = convertNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name, item := range v {
			if v[name], err = convertNumbers(item); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func parseNumber(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %s does not fit int64", ErrValue, text)
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && f == 0 { // numbers that are too large become infinite
		return nil, fmt.Errorf("%w: %s", ErrValue, text)
	}
	return f, nil
}
