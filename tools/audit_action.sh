#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The audit step of action.yml. Reads TARGETS, CONTRACT, REQUIRE, EXEC, FORMAT and BASE from the
# environment, and what GitHub gives a step: RUNNER_TEMP, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY.
# The exit code is the gravest of all audits: 1 fails, 2 wrong usage, 3 not decided, 0 holds.
set -euo pipefail

folder=$RUNNER_TEMP/kvreshard
sarif=$folder/sarif
mkdir -p "$sarif"
count=0
gravest=0

graver() {
	local code=$1
	case $gravest$code in
	?0 | 1? | 2[23] | 33) ;;
	*) gravest=$code ;;
	esac
}

audit() {
	local code=0 name
	count=$((count + 1))
	name=$sarif/$count.sarif
	local forms=(--format sarif --output "$name" --write "markdown=$folder/$count.markdown")
	[[ -z $FORMAT ]] || forms+=(--write "$FORMAT=$folder/$count.$FORMAT")
	kvreshard audit "${forms[@]}" "$@" || code=$?
	if [[ ! -e $name ]]; then
		# Nothing was selected, or it broke down, which is no verdict.
		if ((code)); then
			echo "::error title=kvreshard audit::no report, exit code $code; see the log"
			graver 2
		fi
		return
	fi
	graver "$code"
	python -m kvreshard.proofs.audit.annotations "$name"
	cat "$folder/$count.markdown" >>"$GITHUB_STEP_SUMMARY"
	echo >>"$GITHUB_STEP_SUMMARY"
}

options=()
[[ -z $REQUIRE ]] || options+=(--require "$REQUIRE")
case $EXEC in
true) options+=(--exec) ;;
false) ;;
*)
	echo "::error title=kvreshard audit::exec=$EXEC; legal: true, false"
	exit 2
	;;
esac

if [[ -n ${TARGETS//[[:space:]]/} ]]; then
	if [[ -z $CONTRACT ]]; then
		echo "::error title=kvreshard audit::contract is missing; legal: the name or path of one"
		exit 2
	fi
	while IFS= read -r target; do
		target=${target#"${target%%[![:space:]]*}"}
		target=${target%"${target##*[![:space:]]}"}
		[[ -z $target ]] || audit ${options[@]+"${options[@]}"} --contract "$CONTRACT" -- "$target"
	done <<<"$TARGETS"
elif [[ -n $BASE ]] && git cat-file -e "$BASE^{commit}" 2>/dev/null; then
	changed=()
	# A file that is gone asks for an audit too, which then says that it is gone.
	while IFS= read -r -d '' file; do
		changed+=("$file")
	done < <(git diff -z --name-only --relative "$BASE" HEAD)
	if ((${#changed[@]})); then
		audit ${options[@]+"${options[@]}"} --configured --changed -- "${changed[@]}"
	fi
else
	echo "What changed is not known here, so everything configured is audited."
	audit ${options[@]+"${options[@]}"} --configured
fi

verdicts=(holds fails "wrong usage" "not decided")
verdict=${verdicts[gravest]}
if ((gravest == 0)) && ! compgen -G "$sarif/*.sarif" >/dev/null; then
	verdict="nothing to audit"
	echo "No configured planner is among the changed files." >>"$GITHUB_STEP_SUMMARY"
fi
{
	echo "sarif=$sarif"
	echo "verdict=$verdict"
} >>"$GITHUB_OUTPUT"
exit "$gravest"
