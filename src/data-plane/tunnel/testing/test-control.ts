/** For tests: a control plane that answers as it is told, no other data planes, and lists of what is online at this one. */
import { SortedIdMap } from '../../../lib/sorted-id-map.ts'
import type { Control } from '../../../link/planes/control-link.ts'
import type { ControlCalls } from '../../../link/planes/plane-calls.ts'
import type { PresencePage } from '../../../model/presence.ts'
import type { Registry } from '../registry.ts'

export type Answers = Partial<ControlCalls>

/** Whatever has no answer is answered as on a server with a single data plane. */
export function testControl(answers: Answers): Control {
  const all: Answers = {
    returning: async () => [],
    proveAlive: async () => false,
    mayHaveLeg: () => false,
    ...answers,
  }
  // A call and its answer belong together; the types of all calls at once do not show it.
  const answer = (name: keyof ControlCalls, argument: unknown) => all[name]?.(argument as never) as never
  return {
    ask: async (name, argument) => answer(name, argument),
    tell: (name, argument) => void answer(name, argument),
  }
}

/** What is online at a data plane, listed as the control plane does. */
export function listed({ online, groups }: Registry) {
  const shelf = <T extends { readonly id: string }>(all: readonly T[]) => {
    const found = new SortedIdMap<T>()
    for (const each of all) found.add(each.id, each)
    return { page: async (page: PresencePage) => found.page(page), get: async (id: string) => found.get(id) }
  }
  const sessions = shelf(online.sessions.map(({ session }) => session))
  const tunnels = shelf(online.tunnels.map(({ tunnel }) => tunnel))
  const endpoints = shelf(online.tunnels.flatMap(({ endpoint }) => endpoint?.present ?? []))
  return {
    sessions: sessions.page,
    session: sessions.get,
    tunnels: tunnels.page,
    tunnel: tunnels.get,
    endpoints: endpoints.page,
    endpoint: endpoints.get,
    tunnelsWith: async (labels: Readonly<Record<string, string>>) => groups.find(labels).map(({ id }) => id),
  }
}
