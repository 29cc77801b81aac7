/**
 * Loaded into the server by `node --import`, for tests only: reports over the channel to its parent what the process
 * holds. The program itself has no such interface.
 */
import { Socket } from 'node:net'

/** What the process holds, as Node counts it. */
export interface Held {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
  readonly arrayBuffers: number
  /** How many resources of each kind keep the event loop busy. */
  readonly resources: Readonly<Record<string, number>>
  /** Its sockets as it sees them itself, for people: the system forgets those that the other end has closed. */
  readonly sockets: readonly string[]
}

/** Collections in a row before memory is measured: what one of them finalises is freed only by the next. */
const COLLECTIONS = 4

async function measure({ collects }: { collects: boolean }): Promise<Held> {
  for (let i = 0; collects && i < COLLECTIONS; i++) {
    // The `last-resort` flavor: other collections keep the freed pages for the next load.
    globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage()
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  return { rss, heapUsed, external, arrayBuffers, resources, sockets: sockets() }
}

function sockets(): string[] {
  // The only way to the objects behind the counts; undocumented, and for people only.
  const handles = (process as unknown as { _getActiveHandles?: () => unknown[] })._getActiveHandles?.() ?? []
  return handles
    .filter((each) => each instanceof Socket)
    .map((socket) => {
      const { localPort, remotePort, bytesRead, bytesWritten, readableEnded, writableEnded, writableFinished } = socket
      const ends = `${localPort ?? 'no port'} to ${remotePort ?? 'nobody'}`
      const moved = `${bytesRead} bytes read, ${bytesWritten} written, ${socket.writableLength} wait`
      const states = {
        paused: socket.isPaused(),
        readableEnded,
        writableEnded,
        writableFinished,
        destroyed: socket.destroyed,
      }
      const state = Object.entries(states).flatMap(([name, is]) => (is ? name : []))
      return [ends, moved, ...state].join(', ')
    })
}

process.on('message', (question: { readonly id: number; readonly collects: boolean }) => {
  void measure(question).then((held) => process.send?.({ id: question.id, held }))
})
