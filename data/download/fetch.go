package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// patience is the maximum time between two reads from a server.
var patience = 30 * time.Second

// A fetch downloads one file. Only one goroutine may use it.
type fetch struct {
	file
	client *http.Client
	dir    string
	opts   Options // with all defaults set
}

// path returns the path of the complete file, and partPath the path of the partial file.
func (f *fetch) path() string     { return filepath.Join(f.dir, f.name) }
func (f *fetch) partPath() string { return f.path() + ".part" }

func (f *fetch) run(ctx context.Context) error {
	if ok, err := f.isOriginal(f.path()); ok || err != nil && !errors.Is(err, fs.ErrNotExist) {
		if ok {
			f.opts.Progress(f.name, f.size, f.size)
		}
		return err
	}
	if err := f.completePart(ctx); err != nil {
		return err
	}
	switch ok, err := f.isOriginal(f.partPath()); {
	case err != nil:
		return err
	case !ok:
		return errors.Join(fmt.Errorf("%w: SHA-256 is not %s; try another mirror than %s", ErrChecksum,
			f.sha256, f.opts.Mirror), os.Remove(f.partPath()))
	}
	return os.Rename(f.partPath(), f.path())
}

// completePart downloads the rest of the partial file at f.partPath. The file may be longer than
// f.size if the server sends another file. The error wraps [ErrPartial], [ErrStatus] or the
// cause of ctx, or is an error of the network or the file system.
func (f *fetch) completePart(ctx context.Context) error {
	part, err := os.OpenFile(f.partPath(), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer part.Close()
	have, err := part.Seek(0, io.SeekEnd)
	if err != nil || have >= f.size {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	silence := time.AfterFunc(patience, func() { end(fmt.Errorf("%w: no data for %v", ErrPartial, patience)) })
	defer silence.Stop()
	resp, err := f.request(ctx, have)
	if err != nil {
		return withCause(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK && have > 0 { // the server does not support ranges
		if have, err = 0, errors.Join(part.Truncate(0), rewindStart(part)); err != nil {
			return err
		}
	}
	heard := func() { silence.Reset(patience) }
	if err := f.receive(part, resp.Body, have, heard); err != nil {
		return withCause(ctx, err)
	}
	return part.Close()
}

// withCause returns an error that wraps the cause of ctx and contains the text of err, if ctx has
// ended. Otherwise, or if err wraps the cause already, it returns err. err must not be nil.
func withCause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && !errors.Is(err, why) {
		return fmt.Errorf("%w: %v", why, err)
	}
	return err
}

// request requests the file from byte have on. The caller must close the body, which is the whole
// file if the status is [http.StatusOK]. The error wraps [ErrStatus] if the server responds, but
// not with success; other errors concern the URL of the mirror or the connection.
func (f *fetch) request(ctx context.Context, have int64) (*http.Response, error) {
	address, err := url.JoinPath(f.opts.Mirror, f.name)
	if err != nil {
		return nil, fmt.Errorf("mirror %q: %w", f.opts.Mirror, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("mirror %q: %w", f.opts.Mirror, err)
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, err
	}
	continued := resp.StatusCode == http.StatusPartialContent && have > 0
	if resp.StatusCode != http.StatusOK && !continued {
		resp.Body.Close()
		return nil, fmt.Errorf("%w: %s answered %s; set another mirror, or copy the file to %s",
			ErrStatus, address, resp.Status, f.dir)
	}
	return resp, nil
}

// receive appends body to part, which has have bytes already. It calls heard after each read.
// The error wraps [ErrPartial] if the body fails or ends early, or is the error of part.
func (f *fetch) receive(part io.Writer, body io.Reader, have int64, heard func()) error {
	body = io.LimitReader(body, f.size-have+1) // one additional byte reveals another file
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		heard()
		if _, err := part.Write(buf[:n]); err != nil {
			return err
		}
		have += int64(n)
		f.opts.Progress(f.name, min(have, f.size), f.size)
		switch {
		case err == io.EOF && have >= f.size:
			return nil
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%w after %d of %d bytes; run it again to resume", ErrPartial, have, f.size)
		case err != nil:
			return fmt.Errorf("%w after %d of %d bytes: %w", ErrPartial, have, f.size, err)
		}
	}
}

// isOriginal reports whether the file at path has the expected SHA-256 checksum. The error wraps
// [fs.ErrNotExist] if there is no file.
func (f *fetch) isOriginal(path string) (bool, error) {
	r, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return false, err
	}
	return hex.EncodeToString(h.Sum(nil)) == f.sha256, nil
}

func rewindStart(s io.Seeker) error {
	_, err := s.Seek(0, io.SeekStart)
	return err
}
