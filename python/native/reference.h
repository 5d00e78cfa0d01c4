/* References to objects of the library, which a forked child imports again.
 *
 * Every handle that Python holds is in one list. After a fork the handles of the list belong to the
 * parent's copy of the library. When the child uses the first of them, all are imported into its own
 * copy, so that memory that the child inherited stays valid.
 */

typedef struct Reference Reference;
struct Reference {
	shoal_handle handle;
	int epoch;
	Reference *previous, *next;
};

static Reference references = {0, 0, &references, &references};
static pthread_mutex_t references_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_references(void) { pthread_mutex_lock(&references_lock); }
static void unlock_references(void) { pthread_mutex_unlock(&references_lock); }

static void reference_add(Reference *r, shoal_handle h) {
	r->handle = h;
	r->epoch = loaded;
	lock_references();
	r->next = &references;
	r->previous = references.previous;
	references.previous->next = r;
	references.previous = r;
	unlock_references();
}

/* reference_close takes a reference from the list and closes its handle. It needs no GIL. */
static void reference_close(Reference *r) {
	shoal_handle h;
	int e;
	lock_references();
	h = r->handle;
	e = r->epoch;
	r->handle = 0;
	if (r->next) {
		r->previous->next = r->next;
		r->next->previous = r->previous;
		r->next = r->previous = NULL;
	}
	unlock_references();
	if (h && e == epoch && loaded == epoch)
		lib.close(h);
}

/* import_reference imports one object of an earlier epoch. *gone becomes 1 if the parent does not answer,
 * because it is stopped for example. */
static shoal_handle import_reference(const shoal_fork_ticket *ticket, shoal_handle old, double timeout, int *gone) {
	shoal_handle h = 0;
	double begun = now();
	if (*gone || lib.fork_import(ticket, old, timeout, &h) == SHOAL_OK)
		return h;
	*gone = now() - begun > 1;
	return 0;
}

/* references_import imports all references of earlier epochs with a ticket. An object that the parent
 * lost keeps handle 0. It returns the number of objects that were imported. */
static int references_import(const shoal_fork_ticket *ticket, int ticket_epoch, double timeout) {
	Reference *r;
	int imported = 0, gone = ticket->length == 0 || (kill(ticket->process, 0) < 0 && errno == ESRCH);
	lock_references();
	for (r = references.next; r != &references; r = r->next) {
		if (r->epoch == epoch)
			continue;
		if (r->epoch != ticket_epoch || !r->handle)
			r->handle = 0;
		else
			r->handle = import_reference(ticket, r->handle, timeout, &gone);
		r->epoch = epoch;
		imported += r->handle != 0;
	}
	unlock_references();
	return imported;
}
