/** Reads a stream to its end and leaves it open for writing, unlike Node's own consumers. */

/** Reads a stream to its end; rejects when it breaks before. */
export function readAll(stream: NodeJS.ReadableStream): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.once('end', () => resolve(Buffer.concat(chunks)))
    stream.once('error', reject)
    stream.once('close', () => reject(new Error('the stream was closed before its end')))
  })
}
