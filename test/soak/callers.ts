/**
 * A thread that calls the API and visits a name, one after the other, and reports the times. It has its own event loop:
 * otherwise the times would include whatever else the test does meanwhile.
 */
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { ApiClient } from '../support/api-client.ts'
import { visit } from '../support/visitor.ts'

export interface CallersOptions {
  readonly apiUrl: string
  readonly apiKey: string
  /** The path that is requested from the API. */
  readonly path: string
  /** The URL that visitors request, without TLS. */
  readonly visited: string
}

export interface Callers {
  /** Measures; resolves with the median and 99th percentile of each, as text, from the round in the middle. */
  look(): Promise<string>
  stop(): Promise<unknown>
}

const SAMPLES = 1000

/** Rounds of samples: if the machine is briefly busy, that shows in one of them. */
const ROUNDS = 5

export async function startCallers(options: CallersOptions): Promise<Callers> {
  const worker = new Worker(new URL(import.meta.url), { workerData: options })
  await once(worker, 'online')
  return {
    async look() {
      worker.postMessage('look')
      const [text] = (await once(worker, 'message')) as [string]
      return text
    },
    stop: () => worker.terminate(),
  }
}

if (!isMainThread) {
  const { apiUrl, apiKey, path, visited } = workerData as CallersOptions
  const api = new ApiClient(apiUrl, apiKey)
  const look = async () => {
    const calls = await timesOf(() => api.get(path))
    const visits = await timesOf(() => visit(visited, { ca: '' }))
    parentPort?.postMessage(`API ${calls}, visitors ${visits}`)
  }
  parentPort?.on('message', () => void look())
}

async function timesOf(work: () => Promise<unknown>): Promise<string> {
  const rounds: { readonly median: number; readonly p99: number }[] = []
  for (let i = 0; i < ROUNDS; i++) rounds.push(await round(work))
  const middle = (part: 'median' | 'p99') =>
    at(
      rounds.map((each) => each[part]),
      0.5,
    ).toFixed(1)
  return `${middle('median')} ms (p99 ${middle('p99')})`
}

/** The median and 99th percentile of one round, in milliseconds. */
async function round(work: () => Promise<unknown>): Promise<{ median: number; p99: number }> {
  const times: number[] = []
  for (let i = 0; i < SAMPLES; i++) {
    const begun = performance.now()
    await work()
    times.push(performance.now() - begun)
  }
  return { median: at(times, 0.5), p99: at(times, 0.99) }
}

function at(values: number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? 0
}
