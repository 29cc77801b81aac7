/** Opens several parts one after the other, so that none stays open when a later one cannot be opened. */

/** `open` defers how to close each part; these steps run in the opposite order, at once if it fails. */
export async function openAll<T>(open: (opened: AsyncDisposableStack) => Promise<T>): Promise<T> {
  const opened = new AsyncDisposableStack()
  try {
    return await open(opened)
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}
