/** Where answers in ngrok's spelling have more fields than our own, or other values. */
import type { ApiRoute } from '../routes.ts'

type Json = Readonly<Record<string, unknown>>

/** The answer to a call of `route`, or each item of its list, as ngrok's clients read it. */
export function spelled({ resource, action }: Pick<ApiRoute, 'resource' | 'action'>, answer: Json): Json {
  const spell = spellings[resource.kind]
  if (!spell) return answer
  const items = action === 'list' ? answer[resource.listKey ?? ''] : undefined
  return Array.isArray(items) ? { ...answer, [resource.listKey ?? '']: items.map(spell) } : spell(answer)
}

/** By kind of resource. */
const spellings: Readonly<Record<string, (item: Json) => Json>> = {
  tunnel_session: (session) => ({
    ...session,
    transport: session.transport === 'service/v2' ? 'ngrok/v2' : session.transport,
  }),
  // As the hosted service answers, whose names have no region; with another value each Terraform plan shows changes.
  reserved_domain: (domain) => ({ ...domain, region: '' }),
  endpoint: (endpoint) => ({ ...endpoint, ...partsOf(endpoint) }),
}

/** The parts of an endpoint's address, which newer clients read one by one. */
function partsOf({ public_url, proto, hostport }: Json) {
  const text = String(hostport)
  const colon = text.lastIndexOf(':')
  return {
    url: public_url,
    scheme: proto,
    host: text.slice(0, colon),
    port: Number(text.slice(colon + 1)),
  }
}
