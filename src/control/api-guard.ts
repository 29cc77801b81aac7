/** Which addresses may call the API: the enforced IP restriction of type `api`, compiled when something changes. */
import { compileIpRules, type IpRule } from '../lib/ip-rules.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

const KIND = 'ip_restriction'
/** There is one restriction for each of a handful of types. */
const MAX_RESTRICTIONS = 100

type Test = (address: string) => boolean

const everybody: Test = () => true

export class ApiGuard {
  readonly #store: Store
  /** Null when what is stored may have changed since it was compiled. */
  #current: Promise<Test> | null = null

  constructor(store: Store) {
    this.#store = store
    store.feed.subscribe(() => {
      this.#current = null
    })
  }

  /** Whether `address` may call. Fails when the rules cannot be read: then nobody may. */
  async admits(address: string): Promise<boolean> {
    this.#current ??= this.#compile()
    const compiling = this.#current
    try {
      return (await compiling)(address)
    } catch (error) {
      // What failed is not kept: the next call tries again.
      if (this.#current === compiling) this.#current = null
      throw error
    }
  }

  async #compile(): Promise<Test> {
    return this.#store.read(async (reader) => {
      const restrictions = await reader.page({ kind: KIND, limit: MAX_RESTRICTIONS })
      const enforced = restrictions.find(isEnforced)
      if (!enforced) return everybody
      // What is stored has passed the resource's form.
      const policyIds = enforced.fields.ip_policy_ids as readonly string[]
      const rules = await reader.children('ip_policy_rule', policyIds)
      return compileIpRules(rules.map(({ fields }) => fields as unknown as IpRule))
    })
  }
}

/** Stops enforcing the API's own restriction, for whoever locked themselves out; gives whether there was one. */
export async function liftApiRestriction(store: Store): Promise<boolean> {
  return store.write(async (writer) => {
    const restrictions = await writer.page({ kind: KIND, limit: MAX_RESTRICTIONS })
    const enforced = restrictions.find(isEnforced)
    if (!enforced) return false
    await writer.replaceFields(enforced.id, { ...enforced.fields, enforced: false })
    writer.changed(KIND, enforced.id)
    return true
  })
}

function isEnforced({ fields }: Pick<StoredResource, 'fields'>): boolean {
  return fields.type === 'api' && fields.enforced === true
}
