package hogwild

import "errors"

var (
	// ErrOption is wrapped by errors about invalid options.
	ErrOption = errors.New("hogwild: invalid option")
	// ErrDownload is wrapped if the data set could not be downloaded.
	ErrDownload = errors.New("hogwild: download failed")
	// ErrSave is wrapped if the trained network could not be written to the requested file.
	ErrSave = errors.New("hogwild: model not saved at the requested path")
	// ErrUnread is returned if the reader of the output has closed the pipe.
	ErrUnread = errors.New("hogwild: reader of the output has closed the pipe")
)
