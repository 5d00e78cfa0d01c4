package png

// Inflate decompresses size bytes.
func Inflate(in []byte, size int) ([]byte, error) {
	var z inflater
	out := make([]byte, size+slack)
	_, err := z.inflate(out, in)
	return out[:size], err
}
