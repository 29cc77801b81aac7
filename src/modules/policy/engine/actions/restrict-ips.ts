/** `restrict-ips`: lets in addresses by their network. */
import { compilePeerRules, type IpRule } from '../../../../lib/net/ip-rules.ts'
import { Type } from '../../../../lib/shape/type.ts'
import { ACTION_STEPS, defineAction } from '../action.ts'
import { badSetting, checkCidrs, closedObject, enforce } from '../phase-settings.ts'

const MAX_CIDRS = 1000

/** The price of comparing an address with one network, in steps. */
const RULE_STEPS = 20

const cidrs = (description: string) =>
  Type.Array(Type.String({ maxBytes: 64 }), { default: [], maxItems: MAX_CIDRS, description })

const allowed = new Map([['action', 'allow']])

export const restrictIps = defineAction({
  phases: ['connect', 'request', 'response'],
  guards: true,
  config: closedObject({
    enforce,
    allow: cidrs('Networks that may connect.'),
    deny: cidrs('Networks that may not connect, even if `allow` has them.'),
    ip_policies: Type.Array(Type.String({ maxBytes: 255, pattern: '^ipp_[0-9A-Za-z]+$' }), {
      default: [],
      maxItems: 100,
      description: 'Ids of IP policies whose rules also apply.',
    }),
  }),
  refine: ({ allow, deny, ip_policies }, at) => {
    if (allow.length + deny.length + ip_policies.length === 0)
      throw badSetting(at, 'needs `allow`, `deny` or `ip_policies`')
    checkCidrs(allow, `${at}.allow`)
    checkCidrs(deny, `${at}.deny`)
  },
  compile: ({ allow, deny, ip_policies, enforce: isEnforced }, { ipRules }) => {
    const named = ip_policies.flatMap(ipRules).map(({ action, cidr }): IpRule => ({ action, network: cidr }))
    // As in D36, an address passes when some rule allows it and none denies it.
    const isLetIn = compilePeerRules([
      ...allow.map((network): IpRule => ({ action: 'allow', network })),
      ...deny.map((network): IpRule => ({ action: 'deny', network })),
      ...named,
    ])
    return {
      cost: ACTION_STEPS + (allow.length + deny.length + named.length) * RULE_STEPS,
      run(moment) {
        const passes = isLetIn(moment.connection.peer)
        moment.results.set('restrict_ips', passes ? allowed : new Map([['action', 'deny']]))
        return passes || !isEnforced ? undefined : { refuse: 'IP_REFUSED' }
      },
    }
  },
})
