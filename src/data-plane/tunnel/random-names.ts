/** Random names for endpoints whose agent leaves the choice to us. */

export type RandomBytes = (bytes: number) => Uint8Array

/** `<word>-<word>-<4 hex>.<domain>`: some seven hundred million, so that collisions are rare. */
export function randomName(domain: string, random: RandomBytes): string {
  const [a = 0, b = 0, c = 0, d = 0, ...hex] = random(6)
  const adjective = adjectives[((a << 8) | b) % adjectives.length]
  const noun = nouns[((c << 8) | d) % nouns.length]
  return `${adjective}-${noun}-${Buffer.from(hex).toString('hex')}.${domain}`
}

/** Short, plain, and easy to spell over the phone. */
export const adjectives: readonly string[] = [
  ...['able', 'airy', 'amber', 'ample', 'apt', 'arctic', 'autumn', 'balmy', 'blithe', 'bold', 'brave', 'breezy'],
  ...['bright', 'brisk', 'calm', 'candid', 'cedar', 'civil', 'clear', 'clever', 'coral', 'cosy', 'crisp', 'daring'],
  ...['dawn', 'deft', 'dewy', 'eager', 'early', 'easy', 'even', 'fair', 'fleet', 'fond', 'frank', 'fresh'],
  ...['gentle', 'glad', 'golden', 'grand', 'hale', 'hardy', 'hazel', 'honest', 'humble', 'idle', 'ivory', 'jolly'],
  ...['keen', 'kind', 'late', 'light', 'lively', 'lofty', 'loyal', 'lucid', 'lunar', 'merry', 'mild', 'misty'],
  ...['modest', 'mossy', 'neat', 'nimble', 'noble', 'olive', 'open', 'patient', 'plain', 'polar', 'prime', 'proud'],
  ...['quick', 'quiet', 'rapid', 'rare', 'ready', 'robust', 'rosy', 'royal', 'rustic', 'sandy', 'serene', 'sharp'],
  ...['silver', 'simple', 'sleek', 'smooth', 'snowy', 'sober', 'solar', 'solid', 'spry', 'steady', 'still', 'stout'],
  ...['subtle', 'sunny', 'swift', 'tidy', 'timely', 'vivid', 'warm', 'whole', 'wise', 'witty', 'young', 'zesty'],
]

export const nouns: readonly string[] = [
  ...['acorn', 'alder', 'anchor', 'apple', 'arbor', 'arch', 'badger', 'barley', 'basin', 'beacon', 'beech', 'birch'],
  ...['bison', 'bluff', 'bridge', 'brook', 'canoe', 'canyon', 'castle', 'cliff', 'clover', 'cobble', 'comet', 'cove'],
  ...['crane', 'creek', 'delta', 'dune', 'eagle', 'ember', 'falcon', 'fern', 'field', 'finch', 'fjord', 'forest'],
  ...['garden', 'gate', 'glade', 'grove', 'gull', 'harbor', 'hare', 'haven', 'heath', 'hedge', 'heron', 'hill'],
  ...['island', 'ivy', 'juniper', 'kestrel', 'lagoon', 'lake', 'lantern', 'larch', 'lark', 'leaf', 'lily', 'linden'],
  ...['lynx', 'maple', 'marsh', 'meadow', 'mesa', 'mill', 'moor', 'moss', 'oak', 'oasis', 'orchard', 'otter'],
  ...['owl', 'pebble', 'pine', 'plum', 'pond', 'poplar', 'prairie', 'quartz', 'quay', 'quill', 'raven', 'reef'],
  ...['ridge', 'river', 'robin', 'sage', 'shore', 'sparrow', 'spring', 'stone', 'summit', 'thicket', 'thistle', 'tide'],
  ...['trail', 'tulip', 'tundra', 'vale', 'valley', 'violet', 'walnut', 'wharf', 'willow', 'wren', 'yarrow', 'yew'],
]
