/** The `ip_restriction` module: which source addresses may connect. */
import { Type } from '../../lib/shape/type.ts'
import { refuseRepeats } from '../../model/fields.ts'
import { defineModule, moduleForm } from '../module.ts'

const MAX_POLICIES = 100

const form = moduleForm({
  ip_policy_ids: Type.Array(Type.String({ minLength: 1, maxBytes: 255 }), {
    minItems: 1,
    maxItems: MAX_POLICIES,
    description: 'Ids of the IP policies whose rules, taken together, decide which source addresses may connect.',
  }),
})

/** Networks in CIDR form: D36, an address passes when one of `allow` holds it and none of `deny` does. */
export interface IpRestrictionSettings {
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}

export const ipRestriction = defineModule({
  name: 'ip_restriction',
  about: 'Lets in the source addresses that some rule of the IP policies allows and none denies.',
  at: { tcp: form, tls: form, route: form },
  needs: () => 'bytes',
  reference: { field: 'ip_policy_ids', shownAs: 'ip_policies', kinds: () => ['ip_policy'] },
  accept: (config, { at }) => {
    refuseRepeats(`${at}ip_policy_ids`, config.ip_policy_ids)
    return config
  },
  resolve: (config, lookup): IpRestrictionSettings => {
    const rules = config.ip_policy_ids.flatMap((id) => lookup.ipRules(id))
    const networks = (wanted: string) => rules.filter(({ action }) => action === wanted).map(({ cidr }) => cidr)
    return { allow: networks('allow'), deny: networks('deny') }
  },
})
