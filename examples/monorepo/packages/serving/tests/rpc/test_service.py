import unittest

from gpu_work import run_kernel
from serving.queue import Server


class ServiceTest(unittest.TestCase):
    server: Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()

    def setUp(self) -> None:
        self.before = self.server.answered

    def tearDown(self) -> None:
        assert self.server.open

    def test_answer(self) -> None:
        run_kernel(0.1)
        assert self.server.answer(2) == 4

    def test_each_call_is_counted(self) -> None:
        self.server.answer(1)
        self.server.answer(1)
        assert self.server.answered - self.before == 2

    def test_several_numbers(self) -> None:
        for number in (1, 5, 7):
            with self.subTest(number=number):
                assert self.server.answer(number) == number + number

    @unittest.expectedFailure
    def test_text_is_read_as_a_number(self) -> None:
        assert self.server.answer("2") == 4  # type: ignore[arg-type]
