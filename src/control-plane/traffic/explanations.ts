/** Explains what an edge, route or policy would do to described traffic. */

import type { CountedWindow } from '../../lib/limits/sliding-counters.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import { BadValue } from '../../lib/shape/check.ts'
import { othersTurn } from '../../lib/threads/others-turn.ts'
import type { Described } from '../../model/described.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import { Refusal } from '../../model/errors.ts'
import type { ExplainWork, Explanation } from '../../model/explanation.ts'
import type { Presence } from '../../model/presence.ts'
import type { ModuleConfig } from '../../modules/module.ts'
import { policy } from '../../modules/policy/form.ts'
import { askedPlace, policyEdge } from '../../modules/policy/policy-dry-run.ts'
import { formsOf, type ModuleForm, moduleMentions } from '../../modules/spellings.ts'
import { edgeResources, readEdgeConfigs, readIpRules } from '../mirrors/edge-configs.ts'
import { asRefusal, type Documents } from '../records/check-documents.ts'
import { checkMentions } from '../records/check-references.ts'
import type { Principal } from '../records/find-caller.ts'
import { visible } from '../records/ownership.ts'
import { endpoints } from '../resources/endpoints.ts'
import { httpsEdgeRoutes } from '../resources/https-edge-routes.ts'
import { resourceOf } from '../resources/index.ts'
import type { Fields } from '../resources/resource.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Reader, StoredResource } from '../store/reader.ts'

interface ExplanationsOptions extends Pick<ControlTools, 'store' | 'sealer'> {
  readonly checks: Pick<Documents, 'readModule'>
  /** Runs the explanation on another thread; `owner` is charged for the work. */
  readonly explain: (owner: string, work: ExplainWork) => Promise<Explanation>
  /** What the rate limits of an edge have counted. */
  readonly counted: (edgeId: string) => Promise<readonly CountedWindow[]>
  /** The facts about this node that an explanation depends on. */
  readonly around: () => Pick<ExplainWork, 'region' | 'publicHttpsPort' | 'ngrokErrorHeader' | 'limitPart'>
  readonly presence: Pick<Presence, 'endpoint'>
  /** The configuration of an agent's endpoint that is online here. */
  readonly endpoint: (id: string) => EdgeConfig | undefined
}

/** The edge and route that the traffic goes through. */
interface Subject {
  readonly config: EdgeConfig
  readonly routeId?: string | undefined
}

export class Explanations {
  readonly #options: ExplanationsOptions

  constructor(options: ExplanationsOptions) {
    this.#options = options
  }

  /** `body` has passed its form. Rejects with `BadValue` or `Refusal`. */
  async explain(principal: Principal, body: Fields): Promise<Explanation> {
    const { explain, around, counted } = this.#options
    const named = Object.keys(subjects).filter((name) => body[name] !== undefined)
    const [field, another] = named
    if (field === undefined) throw new BadValue('edge_id', 'required', ONE_OF)
    if (another !== undefined)
      throw new BadValue(another, 'value', `\`${another}\` cannot be combined with \`${field}\`; ${ONE_OF}`)
    // The form of the body has checked these fields too.
    const asked = Object.fromEntries(Object.entries(body).filter(([name]) => !(name in subjects))) as Described
    const subject = await this.#subject(principal, body, field, asked)
    if (field in stored) await checkSize(subject.config, field)
    const counters = field in stored ? await counted(subject.config.id) : []
    try {
      return await explain(principal.id, { ...subject, asked, ...around(), counters })
    } catch (error) {
      throw asRefusal(error, field)
    }
  }

  #subject(principal: Principal, body: Fields, field: string, asked: Described): Promise<Subject> {
    if (field === 'edge_id') return this.#edgeOrEndpoint(principal, String(body.edge_id))
    if (field === 'route_id') return this.#stored(principal, field, String(body.route_id))
    return this.#document(principal, field, body[field] as ModuleConfig, asked) // it has passed the form of that name
  }

  /** An agent's endpoint is an edge too; an endpoint of a stored edge stands for that edge. */
  async #edgeOrEndpoint(principal: Principal, id: string): Promise<Subject> {
    if (!id.startsWith(endpoints.prefix)) return this.#stored(principal, 'edge_id', id)
    const config = this.#options.endpoint(id)
    if (config) {
      // D122: what an agent sent may hold secrets, and its guards could be tried out.
      if (principal.role === 'admin' || config.ownerId === principal.id) return { config }
      const msg = "only the owner of its agent's credential, or an admin, may have this endpoint explained"
      throw new Refusal('FORBIDDEN', msg, { field: 'edge_id' })
    }
    const { edgeId } = (await this.#options.presence.endpoint(id)) ?? {}
    if (edgeId !== undefined) return this.#stored(principal, 'edge_id', edgeId)
    const msg = `\`edge_id\`: there is no endpoint with the id \`${id}\` online`
    throw new Refusal('UNKNOWN_REFERENCE', msg, { field: 'edge_id' })
  }

  /** The edge that `field` names, or the edge of the route that it names. */
  async #stored(principal: Principal, field: keyof typeof stored, id: string): Promise<Subject> {
    const { store, sealer } = this.#options
    const config = await store.read(async (reader) => {
      await checkMentions(reader, [{ field, id, kinds: stored[field] }])
      const [found] = await reader.resources([id])
      const named = visibleTo(principal, found)
      const [edge] = named.parentId === null ? [named] : await reader.resources([named.parentId])
      return configOf(reader, sealer, visibleTo(principal, edge))
    })
    return { config, routeId: field === 'route_id' ? id : undefined }
  }

  /** A policy given in the request, checked as it would be before it is stored. */
  async #document(principal: Principal, name: string, given: ModuleConfig, asked: Described): Promise<Subject> {
    const { store, checks } = this.#options
    const place = askedPlace(asked)
    if (!place) throw new BadValue('request', 'required', '`request` or `connection` is required: describe one')
    const form = formNamed(name)
    const where = { place, at: `${name}.` }
    const config = await checks.readModule(principal.id, { module: policy, form, given, where })
    const mentions = moduleMentions(policy, place, config)
    const ids = [...new Set(mentions.map(({ id }) => id))]
    const lookup = await store.read(async (reader) => {
      await checkMentions(
        reader,
        mentions.map((mention) => ({ ...mention, field: where.at + mention.field })),
      )
      return readIpRules(reader, ids)
    })
    return { config: policyEdge(config, place, asked, lookup) }
  }
}

/** Largest input that can be passed to another thread in a few milliseconds, in characters. */
const MAX_SIZE = 4 * 1024 * 1024

/** Throws `Refusal` for an edge that is too large. */
async function checkSize({ modules, routes }: EdgeConfig, field: string): Promise<void> {
  const breath = othersTurn()
  let size = JSON.stringify(modules).length
  for (const route of routes) {
    size += JSON.stringify(route).length
    if (size > MAX_SIZE) {
      const msg = `the modules of the edge that \`${field}\` names are too large together to be explained; try \`policy\``
      throw new Refusal('TOO_COSTLY', msg, { field })
    }
    await breath()
  }
}

/** The fields that name what is stored, and its kinds. */
const stored = { edge_id: [...edgeResources.keys()], route_id: [httpsEdgeRoutes.kind] }
const subjects = { ...stored, policy: true, traffic_policy: true }

const ONE_OF = 'give one of `edge_id`, `route_id`, `policy` and `traffic_policy`'

function formNamed(name: string): ModuleForm {
  const form = formsOf(policy, 'route').find((each) => each.name === name)
  if (!form) throw new Error(`a policy has no form ${name}`)
  return form
}

function visibleTo(principal: Principal, found: StoredResource | undefined): StoredResource {
  return visible(resourceOf(found?.kind ?? httpsEdgeRoutes.kind), principal, { id: found?.id ?? '' }, found)
}

async function configOf(reader: Reader, sealer: Sealer, edge: StoredResource): Promise<EdgeConfig> {
  const [config] = await readEdgeConfigs(reader, sealer, [edge])
  if (!config) throw new Error(`${edge.id} is not an edge`)
  return config
}
