/**
 * Many agents in one process, which come back at another node when theirs is gone, with what they keep of their sessions:
 * the same wait as an agent of ours, the same cookie and the same token for their address. Each answers its visitors.
 * Writes the URLs of all to a file and prints `ready`; prints `back` when all are online again.
 *
 * Arguments: how many, a file for the URLs, the port of their node, and that of the other. The authtoken is in BENCH_AUTHTOKEN.
 */
import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { retryDelay } from '../../src/agent/backoff.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import { readProxyHeader } from '../../src/wire/proxy-header.ts'
import type { WireStream } from '../../src/wire/wire-stream.ts'
import { type Former, goOnline } from '../tunnel/light-agent.ts'

/** How many shake hands at the same time: all at once, one process would be too late for most of them. */
const AT_ONCE = 64

const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')

const [count = '', urlFile = '', ownPort = '', otherPort = ''] = process.argv.slice(2)
const authtoken = new Secret(process.env.BENCH_AUTHTOKEN ?? '')

process.once('SIGTERM', () => process.exit(0))

let shaking = 0
const turns: (() => void)[] = []
let back = 0

const first = Array.from({ length: Number(count) }, (_, i) => start(i))
writeFileSync(urlFile, JSON.stringify(await Promise.all(first)))
console.log('ready')

/** Resolves with the URL once it is online; from then on it comes back whenever it is lost. */
async function start(number: number): Promise<string> {
  const former = await connected(number, Number(ownPort), undefined, (mine) => void comeBack(number, mine))
  return former.url
}

async function comeBack(number: number, former: Former): Promise<void> {
  for (let failures = 0; ; failures++) {
    await pause(retryDelay({ failures, isRefused: false, random: Math.random }))
    try {
      await connected(number, Number(otherPort), former, (mine) => void comeBack(number, mine))
    } catch (error) {
      console.error(error instanceof Error ? error.message : String(error))
      continue
    }
    if (++back === Number(count)) console.log('back')
    return
  }
}

async function connected(
  number: number,
  port: number,
  former: Former | undefined,
  onLost: (mine: Former) => void,
): Promise<Former> {
  let mine: Former | undefined
  mine = await goOnline({
    ...{ host: '127.0.0.1', port, authtoken, inTurn, scheme: 'http' as const, onVisitor: answerVisitor },
    // Each from an address of its own, as they would come: the server counts by source.
    localAddress: `127.1.${number >> 8}.${number & 255 || 1}`,
    ...(former && { former }),
    // One that is lost before it is online rejects instead.
    onLost: () => mine && onLost(mine),
  })
  return mine
}

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (shaking === AT_ONCE) await new Promise<void>((resolve) => turns.push(resolve))
  else shaking++
  try {
    return await work()
  } finally {
    const next = turns.shift()
    if (next) next()
    else shaking--
  }
}

function answerVisitor(stream: WireStream): void {
  readProxyHeader(stream, () =>
    stream.attach({
      data: () => {
        stream.end(ANSWER)
        // One request a connection is all that comes.
        stream.attach({ data() {}, end() {}, drain() {}, closed() {} })
      },
      end() {},
      drain() {},
      closed() {},
    }),
  )
}
