package hogwild

import "errors"

var (
	// ErrOption is wrapped by errors about invalid options.
	ErrOption = errors.New("hogwild: bad option")
	// ErrDownload is wrapped if the data set could not be downloaded.
	ErrDownload = errors.New("hogwild: not downloaded")
	// ErrSave is wrapped if the trained network could not be written to the requested file.
	ErrSave = errors.New("hogwild: model not saved where it should be")
	// ErrUnread is returned if the reader of the output has closed the pipe.
	ErrUnread = errors.New("hogwild: nobody reads the output any more")
)
