"""Known differences of a module from the tests, with the reason."""

SHOAL = {
    "test_lock_released_by_another_process": "a lock names its holder, so that its death is noticed; only the holder "
                                             "may release it",
    "test_memory_of_a_plain_tensor": "put copies a tensor that is not in shared memory, and leaves the sender's as it is",
}

TORCH = {
    "test_unpicklable_value_raises_in_put": "values are pickled in a thread, which prints the error",
    "test_put_is_complete_when_it_returns": "a thread sends the value later, and dies with the process",
    "test_killed_holder_of_a_lock": "the lock stays locked for ever",
    "test_killed_member_of_a_barrier": "the other parties wait for ever",
    "test_killed_receiver_of_a_queue": "the dead process holds the lock of the pipe, and get waits for ever",
    "test_receiver_outlives_sender": "the file of the tensor is gone with its sender, unless it was received before",
    "test_tensor_in_shared_memory_is_not_copied": "needs shoal.empty",
    "test_numpy_array_is_shared": "numpy arrays are copied",
    "test_semaphore_of_a_killed_process": "its permits are lost",
    "test_views_share_their_storage_across_messages": "every message makes a storage of its own",
    "test_conjugate_and_negative_views": "the receiver gets the memory without the conjugation",
    "test_shared_memory_name_with_a_null": "Python before 3.13 cuts the name",
    "test_float8_tensor": "not all versions share these dtypes",
}

def reason(module, method, test):
    """Returns why a test is not run, or None."""
    return (SHOAL if module.startswith("shoal") else TORCH).get(test)
