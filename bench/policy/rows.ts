/** The rows that are measured under load: an edge with rules or a login, against a bare one, and with many edges stored. */

import type { Bar, EdgeLane } from '../edge/compare.ts'
import { leadToUpstream, putModule, type Scene, type Side } from '../edge/scene.ts'
import type { SeededEdge, SeededStore } from '../edge/seed.ts'
import { awaitAnswer, awaitHeader, type Entrance } from '../entrance.ts'
import { paths, SMALL_BYTES } from '../nginx.ts'
import { grouped } from '../table.ts'
import { runWrk } from '../wrk.ts'
import { logIn } from './login.ts'
import type { Options } from './options.ts'
import { LAST_HEADER, tenRules } from './rules.ts'

const KEPT_ALIVE = 64

/** For a cost that should not grow; the rest is room for chance. */
const SAME_COST: Bar = { cost: 1.1 }

/** Sets modules of an edge; resolves with the `Cookie` header that a visitor needs, if any. */
type Configure = (side: Side, edge: SeededEdge, entrance: Entrance) => Promise<string | undefined>

interface Kind {
  readonly name: string
  readonly what: string
  readonly configure: Configure
  readonly bar: Bar
}

const kinds: readonly Kind[] = [
  {
    name: 'rules',
    what: 'ten rules',
    configure: async ({ api }, edge, entrance) => {
      await putModule(api, edge, 'policy', tenRules)
      await awaitHeader(entrance, paths.small, { name: LAST_HEADER, bytes: SMALL_BYTES })
      return undefined
    },
    bar: { cost: 1.2 },
  },
  { name: 'login', what: 'a login', configure: logIn, bar: { cost: 1.1 } },
]

export interface Row {
  readonly name: string
  readonly title: (options: Options) => string
  /** Starts the lanes; the others are compared with the first. */
  readonly raise: (scene: Scene, stores: (name: string, edges: number) => Promise<SeededStore>) => Promise<EdgeLane[]>
}

export const rows: readonly Row[] = kinds.flatMap(({ name, what, configure, bar }): Row[] => [
  {
    name,
    title: () => `${name}: requests on ${KEPT_ALIVE} kept-alive connections; an edge with ${what} beside a bare one`,
    async raise(scene, stores) {
      const port = await scene.upstream()
      const side = await scene.serve(await stores(name, scene.options.few))
      const [bare, configured] = side.store.edges
      if (!bare || !configured) throw new Error('two edges are needed')
      return [
        lane('bare', side, null, requests(scene, await leadToUpstream(side, bare, port))),
        lane(what, side, bar, requests(scene, await enter(side, configured, port, configure))),
      ]
    },
  },
  {
    name: `${name}-many`,
    title: ({ few, many }) =>
      `${name}-many: the same edge with ${what}; ${grouped(few)} and ${grouped(many)} edges stored`,
    async raise(scene, stores) {
      const port = await scene.upstream()
      const { few, many } = scene.options
      const lanes: EdgeLane[] = []
      for (const [i, count] of [few, many].entries()) {
        const side = await scene.serve(await stores(`${name}-${count}`, count))
        const edge = side.store.edges.at(-1)
        if (!edge) throw new Error('an edge is needed')
        const run = requests(scene, await enter(side, edge, port, configure))
        lanes.push(lane(`${grouped(count)} edges`, side, i > 0 ? SAME_COST : null, run))
      }
      return lanes
    },
  },
])

/** Sends the edge to the upstream, and then sets the modules that are measured. */
async function enter(side: Side, edge: SeededEdge, port: number, configure: Configure): Promise<Entrance> {
  const entrance = await leadToUpstream(side, edge, port)
  const cookie = await configure(side, edge, entrance)
  const way: Entrance = cookie === undefined ? entrance : { ...entrance, cookie }
  await awaitAnswer(way, paths.small, SMALL_BYTES)
  return way
}

function requests({ stage, path }: Scene, entrance: Entrance): EdgeLane['run'] {
  return (seconds) =>
    runWrk(stage.programs, { wrk: path('wrk'), entrance, path: paths.small, connections: KEPT_ALIVE, seconds })
}

function lane(name: string, { program }: Side, bar: Bar | null, run: EdgeLane['run']): EdgeLane {
  const pids = (): number[] => (program.hasEnded() ? [] : [program.pid])
  return { name, link: 'L7 HTTPS', isOurs: true, bar, pids, run }
}
