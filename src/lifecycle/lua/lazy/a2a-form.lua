-- The form of the agent's answers over A2A.

-- The first answer decides. A bare Message is one only if nothing of the work was shown before it: no progress, artifact,
-- question or failure.
function store_a2a_form()
  local is_shown = record.pace_at or record.answered or chunks or was_retried()
  record.a2a_form = is_shown and 'task' or cmd.a2a_form
end

function was_retried()
  for letter in string.gmatch(record.ends, '.') do
    if lost_reason(letter) == 'retried' then return true end
  end
  return false
end
