/** Flags of the agent that do not work over SSH, with what to do instead. */

const reasons: readonly (readonly [names: RegExp, why: string])[] = [
  [
    /^traffic-policy-file$/,
    'names a file, and this server cannot read your files; give the policy itself with --traffic-policy',
  ],
  [/^traffic-policy-url$/, 'is not supported; give the policy itself with --traffic-policy'],
  [/^upstream-/, 'is for services with TLS, and ssh connects to yours in plain TCP; use our agent'],
  [/^pooling/, 'is not supported over SSH; use our agent, or the command `labeled` and a tunnel group'],
  [/^inspect$/, 'is for the agent; here `ssh -t` shows requests'],
  [/^authtoken$/, 'is for the agent; here your SSH key identifies you'],
  [/^server$/, 'is for the agent; here the server is the one that ssh connects to'],
  [/^ca$/, 'is for the agent; here ssh checks the host key'],
  [/^config$/, 'is for the agent; here use flags'],
  [/^log(-|$)/, 'is for the agent; here `ssh` shows lines, and `ssh -t` a screen'],
]

export function whyUnsupported(name: string): string | undefined {
  return reasons.find(([names]) => names.test(name))?.[1]
}
