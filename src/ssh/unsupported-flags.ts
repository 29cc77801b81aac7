/** Flags of agents that cannot work over SSH, with what to do instead. */

const reasons: readonly (readonly [names: RegExp, why: string])[] = [
  [/^traffic-policy-file$/, 'names a file, and this server cannot read yours; give the policy with --traffic-policy'],
  [/^traffic-policy-url$/, 'is not served; give the policy itself with --traffic-policy'],
  [/^upstream-/, 'is for services with TLS, and ssh connects to yours in plain TCP; use our agent'],
  [/^pooling/, 'cannot be had: an address has one tunnel; use the command `labeled` and a tunnel group'],
  [/^inspect$/, 'is for the agent; requests are shown on a terminal alone, `ssh -t`'],
  [/^authtoken$/, 'is for the agent; here your key says who you are'],
  [/^server$/, 'is for the agent; here ssh says which server'],
  [/^ca$/, 'is for the agent; here ssh checks the host key'],
  [/^config$/, 'is for the agent; give flags'],
  [/^log(-|$)/, 'is for the agent; here lines come without a terminal, and a screen with one, `ssh -t`'],
]

export function whyUnsupported(name: string): string | undefined {
  return reasons.find(([names]) => names.test(name))?.[1]
}
