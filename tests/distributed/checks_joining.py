"""What a process that has joined others knows of them."""

import pytest

import verax

DEVICES = 2


def check_devices() -> None:
    count, index = verax.process_count(), verax.process_index()
    assert count >= 2
    assert verax.process_indices() == list(range(count))
    assert verax.device_count() == DEVICES * count
    assert verax.local_device_count() == DEVICES
    own = verax.local_devices()
    assert [device.process_index for device in own] == [index] * DEVICES
    assert own == verax.local_devices(process_index=index)
    other = verax.local_devices(process_index=(index + 1) % count)
    assert not set(own) & set(other)
    assert verax.devices()[index * DEVICES : (index + 1) * DEVICES] == own


def check_numbers_of_devices() -> None:
    for device in verax.devices():
        assert device.id // 2048 == device.process_index


def check_that_a_process_joins_once() -> None:
    assert verax.distributed.is_initialized()
    with pytest.raises(RuntimeError, match="should only be called once"):
        verax.distributed.initialize("127.0.0.1:1", 2, 0)


def check_unknown_process() -> None:
    with pytest.raises(ValueError, match="there is no process 77"):
        verax.local_devices(process_index=77)
