/**
 * How long does a restart keep people waiting? Starts a server repeatedly on the same data, and measures from outside
 * when each of its listeners accepts connections, when an agent's TLS handshake is done, and when all is ready. With
 * `--against`, alternates a version from the history with this one. Node's compile cache is kept between starts; the
 * first starts, which fill it, do not count.
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { count } from '../flags.ts'
import { describeMachine, machineLines } from '../machine.ts'
import { median } from '../measure.ts'
import { greetAsAgent, isReady, launchPosternServer, type Place, type PosternServer } from '../postern.ts'
import { touch } from '../stage/ports.ts'
import { cpuSeconds } from '../stage/proc.ts'
import type { Stages } from '../stage/stage.ts'
import { table } from '../table.ts'
import { unpack } from '../versions/unpack.ts'
import { withStages } from '../with-stages.ts'

/** Starts that only fill the caches, and do not count. */
const WARM_UPS = 2

/** Pause between two checks, in milliseconds. */
const LOOK_MS = 4

/** The longest that a start may take, in milliseconds. */
const TOO_LONG_MS = 120_000

/** The events to wait for, in the order of the table. */
const marks: Readonly<Record<string, (server: PosternServer) => Promise<unknown>>> = {
  'agents can connect': ({ agentPort }) => touch(agentPort),
  'SSH clients can connect': ({ sshPort }) => touch(sshPort),
  'visitors can connect, HTTPS': ({ httpsPort }) => touch(httpsPort),
  'visitors can connect, HTTP': ({ httpPort }) => touch(httpPort),
  'an agent has shaken hands': (server) => greetAsAgent(server, TOO_LONG_MS),
  'callers of the API can connect': ({ apiPort }) => touch(apiPort),
  'all is ready': (server) => isReady(server, TOO_LONG_MS),
}

type Start = Readonly<Record<string, number>>

interface Side {
  readonly name: string
  readonly place: Place
  readonly dataDir: string
  readonly starts: Start[]
}

export async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { starts: { type: 'string', default: '10' }, against: { type: 'string' } },
  })
  const starts = count('starts', values.starts, 1)
  await withStages(async (stages) => {
    try {
      await measure(stages, starts, values.against)
    } finally {
      await stages.closeAll()
    }
  })
}

async function measure(stages: Stages, starts: number, against: string | undefined): Promise<void> {
  console.log(machineLines(describeMachine({})).join('\n'))
  console.log(`${starts} starts of each; medians, in milliseconds since the start of the process\n`)
  const sides = [sideOf(stages, 'this')]
  if (against !== undefined) sides.unshift(sideOf(stages, against, unpack(stages.open('version'), against)))
  for (let round = -WARM_UPS; round < starts; round++) {
    for (const side of sides) {
      const start = await startOnce(side)
      if (round < 0) continue
      side.starts.push(start)
      console.error(
        `  ${side.name}, start ${round + 1}: ${Object.values(start)
          .map((ms) => ms.toFixed(0))
          .join(', ')}`,
      )
    }
  }
  const rows = [...Object.keys(marks), CPU].map((mark) => [
    mark,
    ...sides.map((side) => median(side.starts.map((start) => start[mark] ?? Number.NaN)).toFixed(0)),
  ])
  console.log(table([['', ...sides.map(({ name }) => name)], ...rows]))
}

const CPU = 'CPU until then'

function sideOf(stages: Stages, name: string, root?: string): Side {
  const stage = stages.open(`start-${name}`)
  const env = { NODE_COMPILE_CACHE: join(stage.folder, 'compiled') }
  const place = { stage, nodeOptions: '', env, ...(root !== undefined && { root }) }
  return { name, place, dataDir: join(stage.folder, 'data'), starts: [] }
}

async function startOnce({ place, dataDir }: Side): Promise<Start> {
  const server = await launchPosternServer(place, { dataDir })
  const begun = performance.now()
  try {
    const found = await Promise.all(
      Object.entries(marks).map(async ([mark, look]): Promise<[string, number]> => {
        await eagerly(() => look(server), server)
        return [mark, performance.now() - begun]
      }),
    )
    return Object.fromEntries([...found, [CPU, cpuSeconds([server.program.pid]) * 1000]])
  } finally {
    await server.program.end()
  }
}

/** Polls more often than `retry`, since these times are milliseconds. */
async function eagerly(look: () => Promise<unknown>, { program }: PosternServer): Promise<void> {
  const deadline = performance.now() + TOO_LONG_MS
  for (;;) {
    try {
      await look()
      return
    } catch (error) {
      if (program.hasEnded()) throw new Error(`the server ended: ${program.output().trim()}`, { cause: error })
      if (performance.now() > deadline) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
