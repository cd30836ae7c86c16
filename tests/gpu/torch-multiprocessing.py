"""torch.multiprocessing: tensors of one process in another, by CUDA IPC."""
import torch
import torch.multiprocessing as mp


def consume(queue, answers):
    for _ in range(4):
        tensor = queue.get()
        tensor += 1
        answers.put(int(tensor.sum()))
        del tensor


def main():
    mp.set_start_method("spawn")
    queue, answers = mp.Queue(), mp.Queue()
    child = mp.Process(target=consume, args=(queue, answers))
    child.start()
    kept = []
    for i in range(4):
        tensor = torch.full((1 << (16 + i),), i, dtype=torch.int64, device="cuda")
        kept.append(tensor)
        queue.put(tensor)
        print("child", answers.get())
    child.join()
    print("parent", [int(t.sum()) for t in kept], "exit", child.exitcode)


if __name__ == "__main__":
    main()
